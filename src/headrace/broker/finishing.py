"""Work that goes on to its end once it has begun, even if the client that asked for it has gone."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Finishing:
    """A change to the cluster in several steps must not stop between two: nobody would do the rest."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What `work` returns or raises. Whoever waits here can be cancelled, the work is not."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return await asyncio.shield(task)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # it has been raised where somebody waited, or nobody wants to know

    async def finished(self, timeout_s: float) -> None:
        """Wait until nothing is under way any more, for so long at the most."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=timeout_s)
