"""The settings of a gateway."""

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import PLAINTEXT, Security


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The cluster that a gateway serves, and its limits."""

    bootstrap: str
    security: Security = PLAINTEXT
    """The security of the gateway's own connections to brokers."""
    schemas_topic: str = "_schemas"
    hosts: Sequence[str] = ()
    """Host names that are accepted on the loopback, besides addresses, localhost and the machine's name."""
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
