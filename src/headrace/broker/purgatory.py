"""Fetches that wait for records: woken by the appends themselves, never by looking again."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.broker.partition import Partition


class WaitingFetch:
    """A Fetch short of `missing` bytes; `done` is set when they came, something else changed or time is up.

    It waits from the moment it is made, so that it must be made in the same breath as the read that found
    too little: an append between the two would wake nobody.
    """

    __slots__ = ("_missing", "_partitions", "_timer", "done")

    def __init__(
        self,
        partitions: Sequence["Partition"],
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
        """More can be seen than before; how much more, only a look will tell."""
        self.wake()

    def wake(self) -> None:
        """Let the fetch go on, if it still waits; it then leaves nothing behind."""
        if not self.done.done():
            self.done.set_result(None)
        self._timer.cancel()
        for partition in self._partitions:
            partition.discard_waiting(self)
