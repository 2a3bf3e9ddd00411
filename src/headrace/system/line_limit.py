"""A limit of log lines that clients cause: hostile clients must not fill the disk."""

import time
from collections.abc import Callable
from typing import Final

MAX_LINES: Final = 100  # in a second


class LineLimit:
    """Counts the lines of the current second."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._second = 0
        self._lines = 0  # in this second

    def has_room(self) -> bool:
        """Count a line, and return whether it may be written."""
        second = int(self._now_s())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= MAX_LINES
