"""JSON: values as they are written, and JSON without a schema of its own as columns of given Arrow types."""

import json
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from operator import methodcaller
from typing import Any, Final

import pyarrow as pa

from headrace.registry.formats.json.text import refuse_constant
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.exact import decimal, double, json_number, moment, nanoseconds, narrow_float
from headrace.tables.registry.reader import Unreadable
from headrace.tables.registry.shapes import STORED, Array, Field, Leaf, Map, Shape, Struct, as_json, one_line

_UNITS: Final = {"s": timedelta(seconds=1), "ms": timedelta(milliseconds=1)}


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; ValueError if it has a key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"an object has the key {twice!r:.60} twice")
    return found


def _decode_with(parse_float: Callable[[str], Any]) -> Callable[[bytes], Any]:
    decoder = json.JSONDecoder(
        parse_constant=refuse_constant, parse_float=parse_float, object_pairs_hook=members
    )

    scan = decoder.scan_once  # type: ignore[attr-defined]

    def decode(payload: bytes) -> Any:
        try:
            text = payload.decode()
            try:
                found, end = scan(text, 0)
            except StopIteration:
                return decoder.decode(text)
            return found if end == len(text) else decoder.decode(text)  # raises unless spaces follow
        except (ValueError, RecursionError) as error:
            raise Unreadable(f"it is not JSON: {one_line(error)}") from error

    return decode


decode_json: Final = _decode_with(json_number)
"""Returns a value of JSON, or raises Unreadable. A number that is not a double exactly is a Decimal."""
decode_decimals: Final = _decode_with(Decimal)
"""Does the same, with a Decimal for every number that is not an integer."""


def json_columns(kind: pa.StructType) -> tuple[Shape, Callable[[bytes], Any]]:
    """Return the shape of JSON in columns of these types, and the function that decodes it."""
    return _shape(kind), decode_decimals if _has_decimals(kind) else decode_json


def _shape(kind: pa.DataType) -> Shape:
    """Return the shape of JSON values in a column of this type. Fields that the type lacks are ignored."""
    if pa.types.is_struct(kind):
        return Struct(
            tuple(Field(each.name, methodcaller("get", each.name), _shape(each.type)) for each in kind)
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return Array(_shape(kind.value_type))
    if pa.types.is_map(kind):
        return Map(Leaf(kind.key_type), _shape(kind.item_type))
    if kind.id not in STORED:
        raise ReadError(f"JSON cannot be read as a column of type {kind}")
    return Leaf(kind, _conversion(kind))


def _has_decimals(kind: pa.DataType) -> bool:
    return pa.types.is_decimal(kind) or any(
        _has_decimals(kind.field(each).type) for each in range(kind.num_fields)
    )


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_timestamp(kind):
        return nanoseconds if kind.unit == "ns" else _timestamp(kind)
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_decimal(kind):
        return decimal(kind.scale)
    if pa.types.is_float64(kind):
        return double
    if pa.types.is_floating(kind):
        return narrow_float(kind.bit_width)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: value if isinstance(value, str) else as_json(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return str.encode
    return None


def _timestamp(kind: pa.TimestampType) -> Callable[[str], datetime]:
    unit = _UNITS.get(kind.unit)

    def timestamp(text: str) -> datetime:
        found = moment(text)
        if unit is not None and timedelta(microseconds=found.microsecond) % unit:
            raise ValueError(f"{text:.60} is not a whole number of {kind.unit}")
        return found

    return timestamp
