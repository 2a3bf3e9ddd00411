"""What was read a moment ago, for those to whom it is good enough."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar

from fastapi import Request

KEPT_S: Final = 5.0
SWAP: Final = "x-headrace-swap"
"""The header with which a script asks for the same table sorted, filtered or turned to another page."""

Value = TypeVar("Value")


class Lately(Generic[Value]):
    """One value, and when it was read."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = Lock()
        self._kept: tuple[float, Value] | None = None

    def get(self, request: Request, read: Callable[[], Value]) -> Value:
        """What `read` gives, or gave for the page that `request` only wants to see otherwise."""
        return self.aged(KEPT_S if SWAP in request.headers else 0, read)

    def aged(self, most_s: float, read: Callable[[], Value]) -> Value:
        """What `read` gives, or gave no longer ago than that."""
        with self._lock:
            kept = self._kept
        if kept is not None and self._now_s() - kept[0] < most_s:
            return kept[1]
        value = read()
        with self._lock:
            self._kept = (self._now_s(), value)
        return value
