"""How this broker authenticates to other brokers."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.sasl.exchange import PLAIN, SCRAM_SHA_256, SCRAM_SHA_512
from headrace.security.sasl.jaas import jaas_options
from headrace.security.sasl.scram import ScramClient

SUPPORTED: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512)
HANDSHAKE_VERSIONS: Final = range(1, 2)
AUTHENTICATE_VERSIONS: Final = range(1, 3)

Ask = Callable[[Message, range], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class PeerCredentials:
    """The user as which this broker connects to others."""

    mechanism: str
    username: str
    password: str = field(repr=False)

    @classmethod
    def of(cls, config: BrokerConfig) -> "PeerCredentials | None":
        """Return the credentials for the inter-broker listener; None if it does not use SASL."""
        listener = config.listener(config.inter_broker_listener)
        if not listener.security_protocol.uses_sasl:
            return None
        mechanism = str(config.of_listener(listener.name, "sasl.mechanism.inter.broker.protocol"))
        if mechanism not in SUPPORTED:
            raise InvalidSetting(
                f"sasl.mechanism.inter.broker.protocol={mechanism}: expected one of {', '.join(SUPPORTED)}"
            )
        jaas = config.of_listener(listener.name, "sasl.jaas.config", mechanism=mechanism)
        options = jaas_options(str(jaas or ""))
        if not options.get("username") or not options.get("password"):
            raise InvalidSetting(
                f"listener.name.{listener.name.lower()}.{mechanism.lower()}.sasl.jaas.config: brokers need "
                "username and password to connect to each other"
            )
        return cls(mechanism, options["username"], options["password"])

    async def authenticate(self, ask: Ask) -> float | None:
        """Authenticate a connection, and return for how many seconds that is valid; None is without limit.

        PeerGone if the other broker refuses it.
        """
        answer = await ask(SaslHandshakeRequest(mechanism=self.mechanism), HANDSHAKE_VERSIONS)
        if answer.error_code != ErrorCode.NONE:
            raise PeerGone(f"the broker does not accept {self.mechanism}")
        if self.mechanism == PLAIN:
            answer = await self._send(ask, f"\0{self.username}\0{self.password}".encode())
            return answer.session_lifetime_ms / 1000 or None
        scram = ScramClient(self.mechanism, self.username, self.password)
        challenge = bytes((await self._send(ask, scram.first().encode())).auth_bytes)
        try:
            # The password is hashed thousands of times.
            proof = await asyncio.to_thread(scram.prove, challenge.decode())
        except (ValueError, KeyError) as error:
            raise PeerGone(f"the broker sent an invalid {self.mechanism} challenge") from error
        answer = await self._send(ask, proof.encode())
        if bytes(answer.auth_bytes) != scram.expected:
            raise PeerGone(f"the broker does not know the password of {self.username}")
        return answer.session_lifetime_ms / 1000 or None

    async def _send(self, ask: Ask, message: bytes) -> SaslAuthenticateResponse:
        request = SaslAuthenticateRequest(auth_bytes=message)
        answer: SaslAuthenticateResponse = await ask(request, AUTHENTICATE_VERSIONS)
        if answer.error_code != ErrorCode.NONE:
            raise PeerGone(f"the broker refuses user {self.username}: {answer.error_message}")
        return answer
