"""Another broker, as a client of its requests sees it: a connection, and how it fails."""

from typing import Any, Protocol

from headrace.protocol.message import Message


class PeerGone(Exception):
    """The connection to the other broker has failed; whether it has handled the request is not known."""


class UnsupportedByPeer(PeerGone):
    """The other broker supports no version of the API that this broker can send; nothing was sent."""

    def __init__(self, message: str, key: int) -> None:
        super().__init__(message)
        self.key = key


class Link(Protocol):
    """A connection to a broker. A request is sent in the highest of `versions` that the broker supports."""

    async def ask(self, request: Message, versions: range, *, timeout_s: float | None = None) -> Any: ...

    def common_versions(self, key: int, versions: range) -> range:
        """Return the versions of an API among `versions` that the broker supports; perhaps none."""

    async def closed(self) -> None: ...

    def close(self) -> None: ...
