"""Waiting for what must become true, with a deadline."""

import time
from collections.abc import Callable
from typing import Final, TypeVar

PAUSE_S: Final = 0.02
PATIENCE_S: Final = 60.0  # what has not happened by then does not happen

T = TypeVar("T")


class NotInTime(AssertionError):
    """Something that had to become true did not."""


def until(what: str, look: Callable[[], T | None], *, timeout_s: float = PATIENCE_S) -> T:
    """What `look` returns as soon as that is true; NotInTime says `what` was waited for."""
    deadline = time.monotonic() + timeout_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise NotInTime(f"not within {timeout_s:g} s: {what}")
        time.sleep(PAUSE_S)
    return found
