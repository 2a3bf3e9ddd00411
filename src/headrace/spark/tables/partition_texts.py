"""The partitioning of an Iceberg table as text: `day(at), bucket(16, id), truncate(4, name), country`."""

import re
from collections.abc import Iterable
from typing import Final

TRANSFORMS: Final = ("year", "month", "day", "hour", "bucket", "truncate")
_WITH_ARGUMENT: Final = ("bucket", "truncate")
_SPLIT: Final = re.compile(r",(?![^(]*\))")  # commas outside of parentheses
_CALL: Final = re.compile(r"(\w+)\s*\((.*)\)")
_EXPECTED: Final = "expected a column, day(column), bucket(16, column) or truncate(4, column)"


def split(text: str) -> tuple[str, ...]:
    """Return the parts of a list; ValueError for an invalid one.

    "day(at), bucket(16, id)" gives ("day(at)", "bucket(16,id)").
    """
    return normalized(_SPLIT.split(text)) if text.strip() else ()


def normalized(parts: Iterable[str]) -> tuple[str, ...]:
    """Return transforms in their usual form: `days( at )` is day(at). ValueError for an invalid part."""
    found = tuple(write(*parse(part)) for part in parts)
    if repeated := sorted({part for part in found if found.count(part) > 1}):
        raise ValueError(f"{repeated[0]!r} is there twice")
    return found


def parse(text: str) -> tuple[str, str, int]:
    """Return the transform, its column and its argument: "bucket(16, id)" gives ("bucket", "id", 16)."""
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call is None:
        if not text or set(text) & set("(),"):
            raise ValueError(f"{text!r} is no partitioning; {_EXPECTED}")
        return "identity", text, 0
    name, inside = call[1].lower(), [part.strip() for part in call[2].split(",")]
    transform = name.removesuffix("s")  # Spark writes days(at)
    if transform not in TRANSFORMS:
        raise ValueError(f"{name!r} is not one of {', '.join(TRANSFORMS)}")
    if transform not in _WITH_ARGUMENT:
        if len(inside) != 1 or not inside[0]:
            raise ValueError(f"{text!r} is no partitioning; expected {transform}(column)")
        return transform, inside[0], 0
    numbers = [part for part in inside if part.isdecimal()]
    columns = [part for part in inside if not part.isdecimal()]
    if len(numbers) != 1 or len(columns) != 1 or not columns[0] or int(numbers[0]) == 0:
        raise ValueError(f"{text!r} is no partitioning; expected {transform}(16, column)")
    return transform, columns[0], int(numbers[0])


def write(transform: str, column: str, argument: int = 0) -> str:
    if transform == "identity":
        return column
    return f"{transform}({argument},{column})" if argument else f"{transform}({column})"
