"""Pauses of long loops of the controller, in which its broker serves requests."""

import asyncio
from typing import Final

_UNPAUSED: Final = 256
"""Elements, each of which takes some ten microseconds at most."""


class Pauses:
    """Yields to the event loop once in a while; the count does not depend on the clock."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = _UNPAUSED

    async def next(self, elements: int = 1) -> None:
        """Count elements of the loop, and pause after every 256 of them."""
        self._left -= elements
        if self._left <= 0:
            self._left = _UNPAUSED
            await asyncio.sleep(0)
