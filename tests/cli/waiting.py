"""Waiting for something to be so."""

import time
from collections.abc import Callable

WAIT_S = 30.0


def until(condition: Callable[[], bool], timeout_s: float = WAIT_S) -> None:
    """Return as soon as it holds; fail if it does not in time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not so after {timeout_s} s"
        time.sleep(0.05)
