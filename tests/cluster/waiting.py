"""Waiting for what must become true, with a deadline; ports that nobody's connections take away."""

import random
import socket
import time
from collections.abc import Callable
from typing import Final, TypeVar

PAUSE_S: Final = 0.02
PATIENCE_S: Final = 60.0  # what has not happened by then does not happen
FIRST_PORT, LAST_PORT = 12_000, 29_000  # below those that the system gives to outgoing connections

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


def free_port(host: str = "127.0.0.1", *, room: int = 1) -> int:
    """A port that is free now, with `room` - 1 more above it, and stays so over a restart."""
    while True:
        first = random.randrange(FIRST_PORT, LAST_PORT)
        if all(is_free(host, port) for port in range(first, first + room)):
            return first


def is_free(host: str, port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((host, port))
        except OSError:
            return False
        return True
