"""Deadlines of a coordinator: many, and most of them are moved long before they are due."""

import heapq
from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Deadlines(Generic[Key]):
    """One deadline for each key. Setting one costs a dictionary entry; the heap is corrected lazily.

    A heartbeat moves its member's deadline to a later time. The heap still has the earlier time; `due` then
    finds that the key is not due and pushes it again with its current deadline. So the heap has at most one
    valid entry for each key, however often the deadline is moved.
    """

    def __init__(self) -> None:
        self._at: dict[Key, int] = {}
        self._queued: dict[Key, int] = {}  # the time in the key's valid heap entry
        self._heap: list[tuple[int, int, Key]] = []
        self._order = 0  # a tie breaker, because keys need not be comparable

    def __contains__(self, key: Key) -> bool:
        return key in self._at

    def __len__(self) -> int:
        return len(self._at)

    def set(self, key: Key, at_ms: int) -> None:
        self._at[key] = at_ms
        queued = self._queued.get(key)
        if queued is None or at_ms < queued:
            self._order += 1
            self._queue(key, at_ms, self._order)

    def clear(self, key: Key) -> None:
        self._at.pop(key, None)

    def due(self, now_ms: int) -> Iterator[Key]:
        """Remove and yield the keys whose deadline has passed, earliest first, each when it is asked for.

        Deadlines may be moved and cleared in between. One that is pushed meanwhile is left to the next call,
        so that a deadline which is set again and again to a time that has passed does not make this endless.
        """
        last = self._order
        while self._heap:
            queued_ms, order, key = self._heap[0]
            if queued_ms > now_ms or order > last:
                return
            heapq.heappop(self._heap)
            if self._queued.get(key) != queued_ms:
                continue  # the deadline was moved to an earlier time, which has an entry of its own
            del self._queued[key]
            at_ms = self._at.get(key)
            if at_ms is None:
                continue
            if at_ms > queued_ms:
                self._queue(key, at_ms, order)
            else:
                del self._at[key]
                yield key

    def shift(self, by_ms: int) -> None:
        """Move every deadline, because the clock was set."""
        moved = {key: at_ms + by_ms for key, at_ms in self._at.items()}
        self._at, self._queued, self._heap = {}, {}, []
        for key, at_ms in moved.items():
            self.set(key, at_ms)

    def next_ms(self) -> int | None:
        """Return when to call `due` next: perhaps too early, never too late."""
        return self._heap[0][0] if self._heap else None

    def _queue(self, key: Key, at_ms: int, order: int) -> None:
        self._queued[key] = at_ms
        heapq.heappush(self._heap, (at_ms, order, key))
