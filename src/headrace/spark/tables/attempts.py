"""Retries of commits to a table that other writers commit to at the same time."""

import random
import time
from collections.abc import Iterator
from typing import Final

ATTEMPTS: Final = 10
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 4.0  # about 15 s in total


def attempts() -> Iterator[int]:
    """Yield 1 to ATTEMPTS, with a backoff before each attempt but the first.

    The backoff grows and is random, so that writers that have collided do not collide again.
    """
    yield 1
    for attempt in range(2, ATTEMPTS + 1):
        longest = min(FIRST_PAUSE_S * 2 ** (attempt - 2), LONGEST_PAUSE_S)
        time.sleep(random.uniform(longest / 2, longest))  # noqa: S311  not for secrets
        yield attempt
