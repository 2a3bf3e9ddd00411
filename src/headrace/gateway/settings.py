"""The settings of a gateway."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import PLAINTEXT, Security
from headrace.security.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The cluster that a gateway serves, how its users authenticate, and its limits."""

    bootstrap: str
    security: Security = PLAINTEXT
    """The security of the gateway's own connections to brokers."""
    authentication: bool = False
    """Whether every request needs credentials, which the gateway passes on to the brokers."""
    password_mechanism: str | None = None
    """The SASL mechanism for users with a password; None: the strongest that the brokers offer."""
    tls: TlsSettings | None = None
    """HTTPS: certificate, key, and which clients' certificates are trusted. None: plain HTTP."""
    principal_mapping_rules: str = "DEFAULT"
    session_idle_s: float = 30 * 60.0
    session_absolute_s: float = 12 * 3600.0
    schemas_topic: str = "_schemas"
    hosts: Sequence[str] = ()
    """Host names that are accepted besides addresses, localhost and the machine's name."""
    trusted_proxies: Sequence[str] = ()
    """Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are believed."""
    max_request_bytes: int = 64 * 1024 * 1024
    max_bodies_bytes: int = 128 * 1024 * 1024
    """The most bytes that the bodies of all requests may hold at a time; beyond that a request gets 503."""
    max_connections: int = 1000
    """Fewer if the limit of open files is low."""
    read_timeout_s: float = 30.0
    """The time for the whole head of a request, and for each pause in its body."""

    @property
    def connection(self) -> ConnectionSettings:
        """How the gateway connects to brokers."""
        return ConnectionSettings(self.bootstrap, self.security)
