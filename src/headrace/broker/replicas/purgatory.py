"""Requests that wait: a Fetch for records, a Produce with acks=all for the in-sync replicas. No polling."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from headrace.protocol.errors import KafkaError

Commit = asyncio.Future[KafkaError | None]
"""Done when a batch is committed; the result is why this leader will not commit it, or None."""


_NOTHING: Final[deque[tuple[int, Commit]]] = deque()
"""Shared by all partitions until their first batch: even an empty deque takes 760 bytes."""


class WaitingAcks:
    """Appended batches of one partition that are not committed yet, in the order of their offsets."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting = _NOTHING

    def add(self, next_offset: int, loop: asyncio.AbstractEventLoop) -> Commit:
        """Return a future that is done when the high watermark has reached `next_offset`."""
        commit: Commit = loop.create_future()
        if self._waiting is _NOTHING:
            self._waiting = deque()
        self._waiting.append((next_offset, commit))
        return commit

    def complete(self, high_watermark: int) -> None:
        """Release the batches below the high watermark."""
        while self._waiting and self._waiting[0][0] <= high_watermark:
            _release(self._waiting.popleft()[1], None)

    def fail(self, error: KafkaError) -> None:
        """Release every batch with `error`: this leader will not commit them."""
        while self._waiting:
            _release(self._waiting.popleft()[1], error)


def _release(commit: Commit, error: KafkaError | None) -> None:
    if not commit.done():  # the request may have timed out
        commit.set_result(error)


class Waitable(Protocol):
    """A partition that tells waiting fetches about new records."""

    def add_waiting(self, fetch: "WaitingFetch", *, as_replica: bool) -> None: ...

    def discard_waiting(self, fetch: "WaitingFetch") -> None: ...


class WaitingFetch:
    """A Fetch that lacks `missing` bytes; `done` is set when they are there, or at its timeout.

    It waits from the moment it is created. Create it without an await after the read that found too little:
    an append between the two would wake nobody.
    """

    __slots__ = ("_missing", "_partitions", "_timer", "done")

    def __init__(
        self,
        partitions: Sequence[Waitable],
        *,
        missing: int,
        max_wait_ms: int,
        loop: asyncio.AbstractEventLoop,
        as_replica: bool = False,
    ) -> None:
        self._missing = missing
        self._partitions = partitions
        self._timer = loop.call_later(max_wait_ms / 1000, self.wake)
        self.done: asyncio.Future[None] = loop.create_future()
        for partition in partitions:
            partition.add_waiting(self, as_replica=as_replica)

    def arrived(self, size: int) -> None:
        """Count `size` new bytes that the fetch can see."""
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def look_again(self) -> None:
        """Wake: the high watermark has moved by an unknown number of bytes."""
        self.wake()

    def wake(self) -> None:
        """Complete the fetch, if it still waits, and remove it from its partitions."""
        if not self.done.done():
            self.done.set_result(None)
        self._timer.cancel()
        for partition in self._partitions:
            partition.discard_waiting(self)
