"""Rows of every type that a table can hold: ordinary ones, nulls and extremes."""

import datetime as dt
from decimal import Decimal
from typing import Any, Final

TYPES: Final = (
    "id long, tiny byte, small short, number int, single float, twice double, yes boolean, text string, "
    "raw binary, day date, at timestamp, local timestamp_ntz, price decimal(12,3), big decimal(38,10), "
    "list array<int>, times array<timestamp>, dict map<string,double>, "
    "inner struct<a:int,b:struct<c:string,at:timestamp>>, "
    "deep array<struct<k:string,v:map<string,array<date>>>>"
)
NOON: Final = dt.datetime(2026, 1, 31, 12, 30, 15, 123456, tzinfo=dt.UTC)
DAY: Final = dt.date(2026, 1, 31)
VALUES: Final[dict[str, Any]] = {
    "id": 1,
    "tiny": -128,
    "small": 32_000,
    "number": -(2**31),
    "single": 1.5,
    "twice": 0.1,
    "yes": True,
    "text": "ä" * 40,
    "raw": b"\x00\xff",
    "day": DAY,
    "at": NOON,
    "local": NOON.replace(tzinfo=None),
    "price": Decimal("-123456789.123"),
    "big": Decimal("1234567890123456789012345678.0123456789"),
    "list": [1, None, 3],
    "times": [NOON, None],
    "dict": {"a": 1.0, "b": None},
    "inner": {"a": 5, "b": {"c": "x", "at": NOON}},
    "deep": [{"k": "k", "v": {"x": [DAY, None]}}, None],
}
NULLS: Final = dict.fromkeys(VALUES) | {"id": 2}
EDGES: Final = NULLS | {
    "id": 3,
    "twice": float("nan"),
    "text": "",
    "day": dt.date(1, 1, 1),
    "at": dt.datetime(1900, 1, 1, tzinfo=dt.UTC),
    "list": [],
    "dict": {},
    "inner": {"a": None, "b": None},
}


ROWS: Final = (VALUES, NULLS, EDGES)


def plain(value: Any) -> Any:
    """As it was put in: Arrow returns maps as lists of pairs. NaN is something equal to itself."""
    if value in ({}, []):
        return "empty"
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, tuple) for each in value):
        return {name: plain(each) for name, each in value}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return "NaN" if value != value else value  # noqa: PLR0124
