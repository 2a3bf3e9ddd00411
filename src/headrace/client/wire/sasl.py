"""SASL authentication: PLAIN, SCRAM and OAUTHBEARER."""

import hmac
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.client.errors import AuthenticationFailed, Refused, WrongSetting
from headrace.client.wire.oauth import TokenEndpoint
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.sasl_authenticate import SaslAuthenticateRequest
from headrace.protocol.schema.sasl_handshake import SaslHandshakeRequest
from headrace.security.sasl.jaas import jaas_options
from headrace.security.sasl.scram import ScramClient

OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", OAUTHBEARER)
_JAAS_SYNTAX: Final = 'MODULE required username="..." password="...";'

Ask = Callable[[Any], Any]
TokenSource = Callable[[str], tuple[Any, ...]]
"""confluent-kafka's oauth_cb: from sasl.oauthbearer.config to (token, expiry, principal, extensions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sasl:
    """A user's credentials, or a source of tokens.

    With `is_token`, the user name is the id of a delegation token, and the broker is told so
    (`tokenauth=true`).
    """

    mechanism: str
    username: str
    password: str = field(repr=False)
    tokens: TokenSource | None = field(default=None, repr=False)
    is_token: bool = field(default=False, repr=False)

    @classmethod
    def of(cls, settings: Mapping[str, str], tokens: TokenSource | None = None) -> "Sasl":
        """Read a client's settings; WrongSetting names the one that is wrong."""
        mechanism = settings.get("sasl.mechanism", settings.get("sasl.mechanisms", "")).strip().upper()
        if mechanism not in MECHANISMS:
            said = f"is {mechanism}" if mechanism else "is missing"
            raise WrongSetting("sasl.mechanism", f"{said}: choose one of {', '.join(MECHANISMS)}")
        if mechanism == OAUTHBEARER and tokens is None:
            endpoint = TokenEndpoint.of(settings)
            return cls(mechanism=mechanism, username=endpoint.client_id, password="", tokens=endpoint)
        if mechanism == OAUTHBEARER:
            config = settings.get("sasl.oauthbearer.config", "")
            return cls(mechanism=mechanism, username=config, password="", tokens=tokens)
        jaas = settings.get("sasl.jaas.config")
        given = settings if jaas is None else {f"sasl.{k}": v for k, v in jaas_options(jaas).items()}
        for name in ("sasl.username", "sasl.password"):
            if not given.get(name):
                if jaas is None:
                    raise WrongSetting(name, "is missing")
                what = name.removeprefix("sasl.")
                raise WrongSetting("sasl.jaas.config", f"has no {what}: expected {_JAAS_SYNTAX}")
        return cls(
            mechanism=mechanism,
            username=given["sasl.username"],
            password=given["sasl.password"],
            is_token=given.get("sasl.tokenauth", "").lower() == "true" and mechanism != "PLAIN",
        )

    def authenticate(self, ask: Ask, address: str) -> int:
        """Authenticate, before the first other request; Refused if the broker does not accept it.

        Return for how many milliseconds the session is valid; 0 means without limit.
        """
        answer = ask(SaslHandshakeRequest(mechanism=self.mechanism))
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise no_sasl(address)
        if answer.error_code:
            others = f", only {', '.join(answer.mechanisms)}" if answer.mechanisms else ""
            raise Refused(f"{address} does not take {self.mechanism}{others}: change sasl.mechanism")
        if self.mechanism == "PLAIN":
            said = self._say(ask, address, f"\0{self.username}\0{self.password}".encode())
        elif self.tokens is not None:
            said = self._bearer(ask, address, self.tokens)
        else:
            said = self._scram(ask, address)
        return int(said.session_lifetime_ms)

    def _bearer(self, ask: Ask, address: str, tokens: TokenSource) -> Any:
        token, _expires, *more = tokens(self.username)
        extensions = "".join(f"{key}={value}\x01" for key, value in (more[1] if more[1:] else {}).items())
        answer = self._say(ask, address, f"n,,\x01auth=Bearer {token}\x01{extensions}\x01".encode())
        refusal = bytes(answer.auth_bytes)
        if refusal:  # the reason comes after an acknowledgement
            self._say(ask, address, b"\x01")
            raise AuthenticationFailed(f"{address} refuses the token: {refusal[:200]!r}")
        return answer

    def _scram(self, ask: Ask, address: str) -> Any:
        scram = ScramClient(self.mechanism, self.username, self.password, is_token=self.is_token)
        try:
            challenge = bytes(self._say(ask, address, scram.first().encode()).auth_bytes)
            last = scram.prove(challenge.decode())
        except (ValueError, KeyError) as error:
            raise Refused(f"{address} sent an invalid {self.mechanism} challenge") from error
        answer = self._say(ask, address, last.encode())
        if not hmac.compare_digest(bytes(answer.auth_bytes), scram.expected):
            raise Refused(f"{address} does not know the password of {self.username}: do not trust it")
        return answer

    def _say(self, ask: Ask, address: str, said: bytes) -> Any:
        answer = ask(SaslAuthenticateRequest(auth_bytes=said))
        if answer.error_code:
            why = (answer.error_message or "authentication failed").rstrip(".")
            raise AuthenticationFailed(
                f"{address} refuses {self.username}: {why}; are user name and password right?"
            )
        return answer


def no_sasl(address: str) -> Refused:
    return Refused(f"{address} knows no SASL: is security.protocol right?")
