"""Which connection makes room for a new one: the oldest without a whole request, of the busiest peer."""

from collections.abc import Hashable
from typing import Generic, TypeVar

Item = TypeVar("Item", bound=Hashable)


class Unanswered(Generic[Item]):
    """Connections that have not sent a whole request, by peer address, each peer's oldest first."""

    def __init__(self) -> None:
        self._by_peer: dict[str, dict[Item, None]] = {}

    def add(self, item: Item, peer: str) -> None:
        """Take in a connection as the newest of its peer, wherever it was before."""
        self.discard(item, peer)
        self._by_peer.setdefault(peer, {})[item] = None

    def discard(self, item: Item, peer: str) -> None:
        """Take out a connection; fine if it is not in here."""
        items = self._by_peer.get(peer, {})
        items.pop(item, None)
        if not items:
            self._by_peer.pop(peer, None)

    def evict(self) -> Item | None:
        """Take out the oldest of the peer that has the most, or return None if there are none."""
        if not self._by_peer:
            return None
        peer = max(self._by_peer, key=lambda each: len(self._by_peer[each]))
        oldest = next(iter(self._by_peer[peer]))
        self.discard(oldest, peer)
        return oldest
