"""The security of a connection, TLS and SASL, from Kafka's names of settings.

    Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice", ...})

Settings of the Java client and of librdkafka are both understood.
"""

import socket
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from headrace.client.errors import Refused, WrongSetting
from headrace.client.wire.config_providers import UnresolvedReference, has_reference, resolve
from headrace.client.wire.sasl import Ask, Sasl
from headrace.client.wire.tls import WANTS_OURS, Tls, wrap

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NOT_OURS: Final = (
    "ssl.engine.factory.class",
    "sasl.login.class",
    "sasl.login.callback.handler.class",
    "sasl.client.callback.handler.class",
)
"""Settings that change how a connection is secured, and are refused because they cannot be obeyed."""
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_OURS: Final = {
    f"{_OAUTH}OAuthBearerLoginCallbackHandler",
    f"{_OAUTH}secured.OAuthBearerLoginCallbackHandler",
}
"""Classes of Java whose work headrace.client.wire.oauth does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """How connections are secured; may be pickled, for Spark's executors."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], literal: Collection[str] = ()) -> "Security":
        """Read a client's settings; WrongSetting names the one that is wrong.

        References such as ${env:PASSWORD} are resolved, except in the settings named in `literal`, and no
        message has what they refer to.
        """
        try:
            return cls.of_resolved(resolve(given, literal))
        except UnresolvedReference:
            raise
        except WrongSetting as error:
            if error.setting not in literal and has_reference(given.get(error.setting)):
                why = f"refers to {given[error.setting]}, whose value is not valid"
                raise WrongSetting(error.setting, why) from None
            raise

    @classmethod
    def of_resolved(cls, given: Mapping[str, Any]) -> "Security":
        """Read settings without references; WrongSetting names the one that is wrong."""
        settings = {name: str(value) for name, value in given.items() if not callable(value)}
        protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise WrongSetting("security.protocol", f"is {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
        for name in _NOT_OURS:
            if settings.get(name) and protocol != "PLAINTEXT" and settings[name] not in _OURS:
                raise WrongSetting(name, "cannot be set: there is no Java class that could be called")
        return cls(
            protocol=protocol,
            tls=Tls.of(settings) if protocol.endswith("SSL") else None,
            sasl=Sasl.of(settings, given.get("oauth_cb")) if protocol.startswith("SASL") else None,
        )

    def connect(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """Return a connected socket, with TLS if so configured; ClientError if its files are unusable."""
        context = None if self.tls is None else self.tls.context()
        plain = socket.create_connection((host, port), timeout_s)
        return plain if context is None else wrap(plain, context, host)

    def authenticate(self, ask: Ask, address: str) -> int:
        """Authenticate, before the first other request; Refused if the broker does not accept it.

        Return for how many milliseconds the session is valid; 0 means without limit.
        """
        return 0 if self.sasl is None else self.sasl.authenticate(ask, address)

    def refusal(self, error: OSError, address: str) -> Refused | None:
        """Return the error as Refused if a retry would fail in the same way, else None."""
        return None if self.tls is None else self.tls.refusal(error, address)

    def doubt(self, *, connected: bool) -> str:
        """Return a likely cause of a connection that the broker closes before its first response."""
        if connected and self.tls is not None and self.tls.keystore is None:
            return f"is security.protocol={self.protocol} right? Perhaps it {WANTS_OURS}"
        return f"is security.protocol={self.protocol} right?"


PLAINTEXT: Final = Security()
