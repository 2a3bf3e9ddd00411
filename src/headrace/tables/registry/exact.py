"""Numbers and times as the types of columns: exactly, or ValueError.

A decimal number is a float exactly if the float, written with as many digits, is that number: 0.1 is, and so
is 0.10000000000000001, but 0.1000000000000000001 and 9007199254740993 are not.
"""

import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

_FEW: Final = 17  # characters of a number: fewer have at most 15 digits, all of which a double has
_MAX_DIGITS: Final = 800  # a double has at most 767
_WIDE: Final = Context(prec=2 * _MAX_DIGITS)
_SMALLEST: Final = 1e-300  # smaller doubles have fewer digits
_LAST_FRACTION: Final = 1e15  # a larger double with 15 digits may be a rounded integer
_NARROW: Final = {16: "e", 32: "f"}  # struct's code, by the bits of a float
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FINER: Final = "fractions of a microsecond (a Registry can truncate_nanoseconds)"
_NANOSECONDS: Final = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")


def json_number(text: str) -> float | Decimal:
    """Return a number with a point or an exponent: a float if it is one exactly, otherwise a Decimal."""
    found = float(text)
    if len(text) < _FEW and (_SMALLEST < abs(found) < _LAST_FRACTION or text == "0.0"):
        return found
    is_fraction = not found.is_integer()
    if is_fraction and repr(found) == text:
        return found
    exact = Decimal(text)
    if exact == found or (is_fraction and _is_written_as(found, exact)):
        return found
    return exact


def integer(value: Any) -> int:
    """Return a number that has no fraction."""
    if type(value) is int:
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < _MAX_DIGITS:
        found = int(value)
        if found == value:
            return found
    raise ValueError(f"{value!s:.60} is not an integer")


def decimal(scale: int) -> Callable[[Any], Decimal]:
    """Return the function that returns a number, or the text of one, with so many digits after the point."""
    unit = Decimal((0, (1,), -scale))

    def scaled(value: Any) -> Decimal:
        found = Decimal(value if isinstance(value, str | Decimal) else str(value))
        if not found.is_finite() or found.adjusted() > _MAX_DIGITS:
            raise ValueError(f"{value!s:.60} is too large for a decimal")
        rounded = found.quantize(unit, context=_WIDE)
        if rounded != found:  # Arrow would read 1E-95 as 0
            raise ValueError(f"{value!s:.60} has more than {scale} digits after the point")
        return rounded

    return scaled


def double(value: Any) -> float:
    """Return a number, or the text of one, as a double."""
    if type(value) is float:
        return value
    if isinstance(value, bool):
        raise TypeError(f"{value} is not a number")
    try:
        found = float(value)
        exact = Decimal(value)
    except OverflowError as error:
        raise ValueError(f"{value!s:.60} is too large for a double") from error
    if exact.is_finite() and exact != found and (type(value) is int or not _is_written_as(found, exact)):
        raise ValueError(f"{value!s:.60} is not a double exactly")
    return found


def narrow_float(bits: int) -> Callable[[Any], float]:
    """Return the function that returns a number as a float of 16 or 32 bits."""
    code = _NARROW[bits]

    def narrowed(value: Any) -> float:
        wide = double(value)
        try:
            (found,) = struct.unpack(code, struct.pack(code, wide))
        except OverflowError:
            found = math.inf
        if math.isfinite(wide) and found != wide and not _is_written_as(found, Decimal(repr(wide))):
            raise ValueError(f"{value!s:.60} is not a float of {bits} bits exactly")
        return float(found)

    return narrowed


def _is_written_as(found: float, exact: Decimal) -> bool:
    """Return whether a float with as many digits as a number is that number."""
    digits = len(exact.as_tuple().digits)
    if found == 0 or digits > _MAX_DIGITS:
        return False
    return exact in {Decimal(repr(found)), Decimal(f"{found:.{digits - 1}e}")}  # they round ties differently


def moment(text: str) -> datetime:
    """Return a time in ISO format; it is in UTC if it has no time zone."""
    refuse_nanoseconds(text)  # Python ignores them
    return truncated_moment(text)


def refuse_nanoseconds(text: str) -> None:
    if len(text) > 26 and _NANOSECONDS.search(text):
        raise ValueError(f"{text:.60} has {_FINER}")


def truncated_moment(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def nanoseconds(text: str) -> int:
    """Return the nanoseconds since 1970 of a time in ISO format."""
    finer = _NANOSECONDS.search(text)
    digits = "" if finer is None else finer[0][7:]
    if len(digits) > 3:
        raise ValueError(f"{text:.60} has fractions of a nanosecond")
    return (truncated_moment(text) - _EPOCH) // timedelta(microseconds=1) * 1000 + int(digits.ljust(3, "0"))


def microseconds(seconds: int, nanoseconds: int) -> int:
    if nanoseconds % 1000:
        raise ValueError(f"{seconds} s {nanoseconds} ns has {_FINER}")
    return truncated_microseconds(seconds, nanoseconds)


def truncated_microseconds(seconds: int, nanoseconds: int) -> int:
    """Return a time or a duration, which may be negative, without its nanoseconds."""
    return seconds * 1_000_000 + int(nanoseconds / 1000)
