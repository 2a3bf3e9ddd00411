"""The errors of encoding and decoding by a schema."""


class BadValue(ValueError):
    """A value cannot be encoded or decoded; `index` says which of several values it is."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class TooCostly(BadValue):
    """Encoding or decoding a value by its schema takes too much CPU time or memory."""
