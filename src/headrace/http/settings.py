"""What a gateway has to be told."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """Which cluster it serves, and its limits."""

    bootstrap: str
    schemas_topic: str = "_schemas"
    max_request_bytes: int = 64 * 1024 * 1024
