"""Waiting for what must become true, with a deadline that fails the test."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

TIMEOUT_S: Final = 20
PAUSE_S: Final = 0.02

T = TypeVar("T")


def eventually(
    look: Callable[[], T],
    *,
    timeout_s: float = TIMEOUT_S,
    pause_s: float = PAUSE_S,
    tell: Callable[[], object] | None = None,
) -> T:
    """What `look` returns as soon as that is true; `tell` says at the deadline what there is instead.

    No pause is needed between looks that wait for something themselves.
    """
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        assert time.monotonic() < deadline, f"not in {timeout_s} s: {tell() if tell else look}"
        time.sleep(pause_s)
    return found


async def eventually_async(look: Callable[[], Awaitable[bool]], *, timeout_s: float = TIMEOUT_S) -> None:
    """Return as soon as `look` does return true."""
    deadline = time.monotonic() + timeout_s
    while not await look():
        assert time.monotonic() < deadline, f"not in {timeout_s} s: {look}"
        await asyncio.sleep(PAUSE_S)
