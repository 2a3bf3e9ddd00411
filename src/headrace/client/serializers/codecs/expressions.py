"""CEL expressions by which messages are selected: value.total > 100 && key.startsWith("eu-").

Expressions come from users, and values from anybody: `codec_worker` evaluates them, with limits on CPU time
and memory.
"""

from datetime import UTC, datetime
from typing import Any, Final

import cel

VARIABLES: Final = ("key", "value", "headers", "partition", "offset", "timestamp_ms", "time")
LONGEST: Final = 2000  # characters of an expression
_YEAR_10000_MS: Final = 253_402_300_800_000
_NO_MATCH: Final = (KeyError, TypeError, IndexError, ValueError, ArithmeticError)
"""Errors of one value: it lacks a field, or has one of another type."""


class InvalidExpression(Exception):
    """The expression cannot be used for any message."""


class Expression:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Raise InvalidExpression if the text is not an expression."""
        if len(text) > LONGEST:
            raise InvalidExpression(f"it has more than {LONGEST:,} characters")
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            raise InvalidExpression(_syntax(str(error), text)) from None

    def matches(self, message: dict[str, Any]) -> bool:
        """Return whether the expression is true; it is not for a message to which it cannot be applied.

        Raise InvalidExpression if the result is neither true nor false, or a function does not exist.
        """
        at_ms = message["timestamp_ms"]
        known = at_ms is not None and 0 <= at_ms < _YEAR_10000_MS
        time = datetime.fromtimestamp(at_ms / 1000, UTC) if known else None
        try:
            found = self._program.execute({**message, "time": time})
        except _NO_MATCH:
            return False
        except RuntimeError as error:
            known = ", ".join(VARIABLES)
            raise InvalidExpression(f"{str(error).split('. ')[0][:300]}; its variables are {known}") from None
        if not isinstance(found, bool):
            what = "null" if found is None else f"a {type(found).__name__}"
            raise InvalidExpression(f"its result is {what}: expected true or false, as of value.total > 100")
        return found


def _syntax(error: str, text: str) -> str:
    """Return the parser's message without the expression, which it repeats."""
    said = error.replace(f"Failed to parse expression '{text}': ", "").strip()
    first = said.splitlines()[0] if said else "it is not an expression"
    return "at " + first.removeprefix("ERROR: <input>:").partition(" expecting {")[0][:300]
