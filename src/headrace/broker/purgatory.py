"""Fetches that wait for records: woken by the appends themselves, never by looking again."""

import asyncio


class WaitingFetch:
    """A Fetch short of `missing` bytes; `done` is set when they have come or something else changed."""

    __slots__ = ("_missing", "done")

    def __init__(self, missing: int, loop: asyncio.AbstractEventLoop) -> None:
        self._missing = missing
        self.done: asyncio.Future[None] = loop.create_future()

    def arrived(self, size: int) -> None:
        """Count `size` new bytes that the fetch can see."""
        self._missing -= size
        if self._missing <= 0:
            self.wake()

    def wake(self) -> None:
        if not self.done.done():
            self.done.set_result(None)
