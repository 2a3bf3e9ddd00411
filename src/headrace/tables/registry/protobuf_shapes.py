"""Protobuf messages as columns, with the names of the fields in the .proto file."""

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from operator import attrgetter
from typing import Any, Final

import pyarrow as pa
from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor  # type: ignore[import-untyped]

from headrace.tables.registry.exact import microseconds, truncated_microseconds
from headrace.tables.registry.shapes import TIMESTAMP, Array, Field, Leaf, Map, Shape, Struct, as_json

_SCALARS: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "BOOL",
    pa.int32(): "INT32 SINT32 SFIXED32",
    pa.int64(): "INT64 SINT64 SFIXED64 UINT32 FIXED32",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "STRING",
    pa.binary(): "BYTES",
}
_BY_NUMBER: Final = {
    getattr(FieldDescriptor, f"TYPE_{name}"): Leaf(type_)
    for type_, names in _SCALARS.items()
    for name in names.split()
}
_UNSIGNED: Final = {FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64}
_UINT64: Final = Leaf(pa.decimal128(20, 0), Decimal)  # a bigint is signed
_WRAPPERS: Final = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}


def shape_of(message: Descriptor, around: tuple[str, ...] = ()) -> Shape:
    name = message.full_name
    if name in _KNOWN:
        return _KNOWN[name]
    if name in _WRAPPERS:
        inner = _single(message.fields_by_name["value"], around)
        assert isinstance(inner, Leaf), name
        return Leaf(inner.type, partial(_unwrapped, inner.convert))
    if name in around or not message.fields:  # columns have no recursive or empty structs
        return _JSON
    inside = (*around, name)
    return Struct(tuple(Field(field.name, _getter(field), _field(field, inside)) for field in message.fields))


def _field(field: FieldDescriptor, around: tuple[str, ...]) -> Shape:
    if not field.is_repeated:
        return _single(field, around)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        entry = field.message_type.fields_by_name
        return Map(_single(entry["key"], around), _single(entry["value"], around))
    return Array(_single(field, around))


def _single(field: FieldDescriptor, around: tuple[str, ...]) -> Shape:
    if field.message_type is not None:
        return shape_of(field.message_type, around)
    if field.enum_type is not None:
        return Leaf(pa.string(), _named(field.enum_type))
    return _UINT64 if field.type in _UNSIGNED else _BY_NUMBER[field.type]


def _getter(field: FieldDescriptor) -> Callable[[Any], Any]:
    """Return a getter: an unset field with presence is null, unless the schema declares a default."""
    take, name = attrgetter(field.name), field.name
    if not field.has_presence or (field.has_default_value and field.message_type is None):
        return take
    return lambda message: take(message) if message.HasField(name) else None


def _named(enum: EnumDescriptor) -> Callable[[int], str]:
    names = {number: value.name for number, value in enum.values_by_number.items()}
    return lambda number: names.get(number) or str(number)  # values of a newer schema


def _unwrapped(convert: Callable[[Any], Any] | None, message: Any) -> Any:
    return convert(message.value) if convert else message.value


def _microseconds(message: Any) -> int:
    return microseconds(message.seconds, message.nanos)


def _truncated(message: Any) -> int:
    return truncated_microseconds(message.seconds, message.nanos)


def _json(message: Any) -> str:
    try:
        return as_json(json_format.MessageToDict(message, preserving_proto_field_name=True))
    except json_format.Error as error:  # a NaN in google.protobuf.Value, an unknown type in an Any
        raise ValueError(str(error)) from error


_JSON: Final = Leaf(pa.string(), _json)
_KNOWN: Final = {
    "google.protobuf.Timestamp": Leaf(TIMESTAMP, _microseconds, _truncated),
    "google.protobuf.Duration": Leaf(pa.duration("us"), _microseconds, _truncated),
    "google.protobuf.Struct": _JSON,
    "google.protobuf.Value": _JSON,
    "google.protobuf.ListValue": _JSON,
}
