"""Pauses of long loops of the controller, in which its broker serves requests."""

import asyncio
from collections.abc import Generator
from typing import Final, TypeVar

T = TypeVar("T")

_UNPAUSED: Final = 64
"""Elements, each of which takes some ten microseconds: together about a millisecond."""


class Pauses:
    """Yields to the event loop once in a while; the count does not depend on the clock."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _UNPAUSED

    async def next(self, elements: int = 1) -> None:
        """Count elements of the loop, and pause after every 64 of them."""
        self._left -= elements
        if self._left <= 0:
            self._left = _UNPAUSED
            await asyncio.sleep(0)


async def with_pauses(steps: Generator[None, None, T], *, elements: int = 1) -> T:
    """Return the result of `steps`, each of which handles some elements."""
    pauses = Pauses()
    try:
        while True:
            next(steps)
            await pauses.next(elements)
    except StopIteration as stop:
        result: T = stop.value
        return result
