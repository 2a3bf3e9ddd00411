"""One process at a time in a directory that several fill."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def only_one_process(directory: Path) -> Iterator[None]:
    """Wait until nobody else is at it. The directory is made if it is not there."""
    directory.mkdir(parents=True, exist_ok=True)
    lock = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # which also unlocks
