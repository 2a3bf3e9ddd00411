"""The errors of encoding and decoding by a schema."""

from collections.abc import Sequence


class BadValue(ValueError):
    """A value cannot be encoded or decoded; `index` says which of several values it is."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class TooCostly(BadValue):
    """Encoding or decoding a value by its schema takes too much CPU time or memory."""


def dotted(path: Sequence[str | int]) -> str:
    """Return the path to a field as text: lines[2].amount."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")
