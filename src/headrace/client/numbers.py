"""Whole numbers as people give them: Python's, or numpy's, which are no ints."""

from operator import index
from typing import Any, Final

LAST_OFFSET: Final = 2**63 - 1
LAST_PARTITION: Final = 2**31 - 1


def whole(given: Any) -> int | None:
    """The number that is meant; None if it is not a whole one, or none at all."""
    try:
        return index(given)
    except TypeError:
        return None
