"""What a gateway has to be told."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Which cluster it serves, and its limits."""

    bootstrap: str
    schemas_topic: str = "_schemas"
    hosts: Sequence[str] = ()
    """Names, besides addresses, localhost and the machine's, that it may be asked by on the loopback."""
    max_request_bytes: int = 64 * 1024 * 1024
    max_bodies_bytes: int = 128 * 1024 * 1024
    """Of all bodies that are held at a time: what comes beyond is answered with 503."""
    max_connections: int = 1000
    """Fewer where the limit of open files is low."""
    patience_s: float = 30.0
    """For the head of a request, and between two pieces of its body."""
