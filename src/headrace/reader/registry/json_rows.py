"""JSON without a schema of its own, read as columns of given Arrow types."""

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import methodcaller
from typing import Any, Final

import pyarrow as pa

from headrace.reader.registry.reader import Unreadable
from headrace.reader.registry.shapes import Array, Field, Leaf, Map, Shape, Struct, as_json, one_line
from headrace.registry.formats.json_text import refuse_constant

_DECODER: Final = json.JSONDecoder(parse_constant=refuse_constant)


def decode_json(payload: bytes) -> Any:
    """Return the value; Unreadable if it is not JSON."""
    try:
        return _DECODER.decode(payload.decode())
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is not JSON: {one_line(error)}") from error


def json_shape(kind: pa.DataType) -> Shape:
    """Return the shape of JSON values in a column of this type. Fields that the type lacks are ignored."""
    if pa.types.is_struct(kind):
        return Struct(
            tuple(Field(each.name, methodcaller("get", each.name), json_shape(each.type)) for each in kind)
        )
    if pa.types.is_list(kind):
        return Array(json_shape(kind.value_type))
    if pa.types.is_map(kind):
        return Map(Leaf(kind.key_type), json_shape(kind.item_type))
    return Leaf(kind, _conversion(kind))


def _conversion(kind: pa.DataType) -> Callable[[Any], Any] | None:
    if pa.types.is_timestamp(kind):
        return _timestamp if kind.tz else datetime.fromisoformat
    if pa.types.is_date(kind):
        return date.fromisoformat
    if pa.types.is_decimal(kind):
        return lambda value: Decimal(str(value))
    if pa.types.is_floating(kind):
        return float
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return lambda value: value if isinstance(value, str) else as_json(value)
    return None


def _timestamp(text: str) -> datetime:
    found = datetime.fromisoformat(text)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
