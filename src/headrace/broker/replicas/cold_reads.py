"""Reads of logs that are not in the page cache: a thread loads them, so that the event loop never waits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from headrace.storage.page_cache import NotCached

_ATTEMPTS: Final = 16  # each of which loads another part: index, position and data of each cold partition

T = TypeVar("T")


async def without_blocking(read: Callable[[bool], Awaitable[T]], missing: NotCached | None = None) -> T:
    """Return what `read(cached_only)` returns; a thread loads what it needs into the page cache.

    `missing` is what an earlier attempt did not find there. Under memory pressure the last read may block.
    """
    for _ in range(_ATTEMPTS):
        if missing is not None:
            await asyncio.to_thread(missing.load)
        try:
            return await read(True)
        except NotCached as error:
            missing = error
    return await read(False)
