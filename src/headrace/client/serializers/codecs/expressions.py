"""CEL expressions by which messages are selected: value.total > 100 && key.startsWith("eu-").

Expressions come from users, and values from anybody: `codec_worker` evaluates them, with limits on CPU time
and memory.
"""

import re
from datetime import UTC, datetime
from typing import Any, Final

import cel

VARIABLES: Final = ("key", "value", "headers", "partition", "offset", "timestamp_ms", "time")
LONGEST: Final = 2000  # characters of an expression
_YEAR_10000_MS: Final = 253_402_300_800_000
_MISFITS: Final = (KeyError, TypeError, IndexError, ValueError, ArithmeticError)
"""Errors of one value: it lacks a field, or has one of another type."""
_UNDEFINED: Final = re.compile(r"Undefined variable or function: '([^']*)'")
_FUNCTIONS: Final = frozenset(
    {
        *("contains", "endsWith", "matches", "max", "min", "size", "startsWith"),
        *("bytes", "double", "duration", "int", "string", "timestamp", "uint"),
        *("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getHours"),
        *("getMilliseconds", "getMinutes", "getMonth", "getSeconds"),
    }
)
"""Functions that `cel` has. It calls them undefined, too, if they do not take a value of this type."""
_TYPES: Final = {"dict": "map", "str": "string", "float": "double", "NoneType": "null"}


class InvalidExpression(Exception):
    """The expression cannot be used for any message."""


class Misfit(Exception):
    """The expression cannot be applied to one message: it lacks a field, or has one of another type."""


class Expression:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        """Raise InvalidExpression if the text is not an expression."""
        if len(text) > LONGEST:
            raise InvalidExpression(f"it has more than {LONGEST:,} characters")
        try:
            self._program = cel.compile(text)
        except ValueError as error:
            said = str(error).replace(f"Failed to parse expression '{text}': ", "").strip()
            first = said.splitlines()[0] if said else "it is not an expression"
            at, _, rest = first.removeprefix("ERROR: <input>:").partition(" expecting {")[0].partition(": ")
            inner = re.search(r'msg: "([^"]*)"', rest)
            raise InvalidExpression(
                f"at {at}: {inner[1] if inner else rest.partition(' { ')[0]}"[:300]
            ) from None

    def matches(self, message: dict[str, Any]) -> bool:
        """Return whether the expression is true; raise Misfit if it cannot be applied to this message.

        Raise InvalidExpression if the result is neither true nor false, or a function does not exist.
        """
        at_ms = message["timestamp_ms"]
        known = at_ms is not None and 0 <= at_ms < _YEAR_10000_MS
        time = datetime.fromtimestamp(at_ms / 1000, UTC) if known else None
        try:
            found = self._program.execute({**message, "time": time})
        except _MISFITS as error:
            raise Misfit(
                f"there is no {str(error.args[0])[:100]!r}"
                if isinstance(error, KeyError)
                else re.sub(r"\bfloat\b", "double", _first_sentence(str(error)))
            ) from None
        except RuntimeError as error:
            raise _of_function(str(error)) from None
        if not isinstance(found, bool):
            kind = type(found).__name__
            what = f"of type {_TYPES.get(kind, kind)}"
            raise InvalidExpression(f"its result is {what}: expected true or false, as of value.total > 100")
        return found


def _of_function(error: str) -> InvalidExpression | Misfit:
    """Return the error of a call: the function does not exist, or it does not take this value."""
    undefined = _UNDEFINED.match(error)
    if undefined is None:
        return Misfit(_first_sentence(error))
    if undefined[1] in _FUNCTIONS:
        return Misfit(f"{undefined[1]} does not take a value of this type")
    known = ", ".join(VARIABLES)
    return InvalidExpression(f"there is no variable or function {undefined[1]!r}: the variables are {known}")


def _first_sentence(error: str) -> str:
    """Return the beginning of a message of `cel`, without its general advice."""
    first = error.split(". ", maxsplit=1)[0].splitlines()[0] if error else "it cannot be applied"
    return f"{first[:1].lower()}{first[1:200].rstrip(':')}"
