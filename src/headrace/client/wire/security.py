"""How a connection is secured: TLS around it, and who we say we are, by Kafka's own names of settings.

    Security.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "alice", ...})

The Java client's settings and librdkafka's are both understood, as far as they need no keystore of Java's.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.client.errors import ClientError, Refused
from headrace.client.wire.sasl import Ask, Sasl
from headrace.client.wire.tls import WANTS_OURS, Tls, wrap

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NO_JAVA: Final = "there is no Java class that could be called"
_NOT_OURS: Final = {
    "ssl.engine.factory.class": _NO_JAVA,
    "ssl.cipher.suites": "ciphers are those that OpenSSL holds for safe",
    "ssl.crl.location": "whether certificates have been revoked is not checked",
    "sasl.login.class": _NO_JAVA,
    "sasl.login.callback.handler.class": _NO_JAVA,
    "sasl.client.callback.handler.class": _NO_JAVA,
}
"""What would make a connection safer, or another one, and is better refused than ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """What a connection needs before its first request; may be pickled, and sent to where it is needed."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Sasl | None = None

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> "Security":
        """From a client's settings; ClientError begins with the one that cannot be."""
        protocol = settings.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol not in PROTOCOLS:
            raise ClientError(f"security.protocol is {protocol!r}: choose one of {', '.join(PROTOCOLS)}")
        for name, why in _NOT_OURS.items():
            if settings.get(name) and protocol != "PLAINTEXT":
                raise ClientError(f"{name} cannot be set: {why}")
        return cls(
            protocol=protocol,
            tls=Tls.of(settings) if protocol.endswith("SSL") else None,
            sasl=Sasl.of(settings) if protocol.startswith("SASL") else None,
        )

    def connect(self, host: str, port: int, timeout_s: float) -> socket.socket:
        """A connection with TLS around it, if that is wanted; ClientError if its files cannot be used."""
        context = None if self.tls is None else self.tls.context()
        plain = socket.create_connection((host, port), timeout_s)
        return plain if context is None else wrap(plain, context, host)

    def authenticate(self, ask: Ask, address: str) -> None:
        """Say who we are, before anything else is asked; Refused if the broker does not believe it."""
        if self.sasl is not None:
            self.sasl.authenticate(ask, address)

    def refusal(self, error: OSError, address: str) -> Refused | None:
        """What trying again will not change, as a sentence; None if it may pass."""
        return None if self.tls is None else self.tls.refusal(error, address)

    def doubt(self, *, connected: bool) -> str:
        """What to ask oneself when a broker hangs up before its first answer."""
        if connected and self.tls is not None and self.tls.certificate is None:
            return f"is security.protocol={self.protocol} right? Perhaps it {WANTS_OURS}"
        return f"is security.protocol={self.protocol} right?"


PLAINTEXT: Final = Security()
