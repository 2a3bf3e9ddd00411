"""Reads of logs that are not in the page cache: a thread loads them, so that the event loop never waits."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from headrace.storage.page_cache import NotCached, cached_only

_ATTEMPTS: Final = 16  # each of which loads another part; under memory pressure the last read may wait

T = TypeVar("T")


async def without_blocking(read: Callable[[], T]) -> T:
    """Return what `read` returns; what it needs is loaded into the page cache in a thread."""
    for _ in range(_ATTEMPTS):
        try:
            with cached_only():
                return read()
        except NotCached as missing:
            await asyncio.to_thread(missing.load)
    return read()
