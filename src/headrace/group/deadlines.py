"""When things have to have happened: many deadlines, most of which are moved long before they are due."""

import heapq
from collections.abc import Hashable
from operator import itemgetter
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """One moment for each key. Setting one costs a dictionary entry; the heap catches up when time passes.

    A heartbeat moves its member's deadline on. The heap then still has the earlier moment; `due` finds
    that the key is not due yet and puts it back where it belongs now. So the heap has at most one entry
    for each key, however often it is moved on.
    """

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # the moment of the key's entry in the heap
        self._heap: list[tuple[int, int, Key]] = []
        self._order = 0  # keys themselves need not be comparable

    def __contains__(self, key: Key) -> bool:
        return key in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: Key, at_ms: int) -> None:
        """Set the key's deadline, or move it."""
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._push(key, at_ms)

    def clear(self, key: Key) -> None:
        """Forget the key's deadline, if it has one."""
        self._at.pop(key, None)

    def due(self, now_ms: int) -> list[Key]:
        """The keys whose deadline has passed, earliest first; they are forgotten."""
        found: list[tuple[int, Key]] = []
        while self._heap and self._heap[0][0] <= now_ms:
            moment, _, key = heapq.heappop(self._heap)
            if self._queued.get(key) != moment:
                continue  # a later entry of a key that was moved to an earlier moment
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > now_ms:
                self._push(key, at_ms)
            else:
                del self._at[key]
                found.append((at_ms, key))
        found.sort(key=itemgetter(0))  # one that was moved on has come up as early as it was due before
        return [key for _, key in found]

    def shift(self, by_ms: int) -> None:
        """Move every deadline: the clock was set."""
        moved = {key: at_ms + by_ms for key, at_ms in self._at.items()}
        self._at, self._queued, self._heap = {}, {}, []
        for key, at_ms in moved.items():
            self.set(key, at_ms)

    def next_ms(self) -> int | None:
        """When to call `due` next; perhaps too early, never too late."""
        return self._heap[0][0] if self._heap else None

    def _push(self, key: Key, at_ms: int) -> None:
        self._queued[key] = at_ms
        self._order += 1
        heapq.heappush(self._heap, (at_ms, self._order, key))
