"""Avro types as columns.

A union of null and one other type is a nullable column. Any other union is a struct with a field for each
branch, of which one is set. fastavro names the type of such a value, as ("shop.Order", {...}), if the type
has a name and the writer's schema has the union too; otherwise the value itself determines the branch.
"""

import uuid
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa

from headrace.reader.registry.shapes import (
    ANYTHING,
    TIMESTAMP,
    Array,
    Field,
    Leaf,
    Map,
    Shape,
    Struct,
    as_json,
)
from headrace.registry.formats.avro_types import AvroType

MAX_DIGITS: Final = 38  # of a decimal128
_EXACT: Final = Context(prec=1000)
_PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
}
_BRANCHES: Final[dict[type, tuple[str, ...]]] = {  # by the type of a value in Python, the best first
    bool: ("boolean",),
    int: ("long", "int", "double", "float"),
    float: ("double", "float"),
    str: ("string", "enum"),
    bytes: ("bytes", "fixed"),
    list: ("array",),
}
_NUMBERS: Final = (
    ({"int", "long"}, pa.int64()),
    ({"int", "long", "float", "double"}, pa.float64()),
)


def shape_of(type_: AvroType, around: tuple[AvroType, ...] = ()) -> Shape:
    """Return the shape of the values that fastavro returns; logical types are numbers or bytes."""
    match type_.kind:
        case "record" | "error":
            return _record(type_, around)
        case "array":
            return Array(shape_of(type_.inner, around))
        case "map":
            return Map(Leaf(pa.string()), shape_of(type_.inner, around))
        case "union":
            return _union(type_, around)
        case "enum":
            return Leaf(pa.string(), untagged)
        case "null":
            return ANYTHING
    return _logical(type_) or Leaf(_PRIMITIVES[type_.kind], untagged if type_.kind == "fixed" else None)


def _record(type_: AvroType, around: tuple[AvroType, ...]) -> Shape:
    if type_ in around or not type_.fields:  # columns have no recursive or empty structs
        return Leaf(pa.string(), _plain_json)
    inside = (*around, type_)
    fields = (Field(each.name, itemgetter(each.name), shape_of(each.type, inside)) for each in type_.fields)
    return Struct(tuple(fields), untagged)


def _union(type_: AvroType, around: tuple[AvroType, ...]) -> Shape:
    others = [each for each in type_.branches if each.kind != "null"]
    if len(others) == 1:
        return shape_of(others[0], around)
    for kinds, wide in _NUMBERS:
        if others and {each.kind for each in others} <= kinds and not any(map(_logical, others)):
            return Leaf(wide, float if wide == pa.float64() else None)
    if not others:
        return ANYTHING
    shapes = [shape_of(each, around) for each in others]
    return Struct(tuple(branch_fields(others, shapes)))


def _logical(type_: AvroType) -> Leaf | None:
    """Return the shape of a logical type that columns have; others are plain numbers or strings."""
    match type_.kind, type_.props.get("logicalType"):
        case "int", "date":
            return Leaf(pa.date32())
        case "long", "timestamp-millis":
            return Leaf(TIMESTAMP, _micros)
        case "long", "timestamp-micros":
            return Leaf(TIMESTAMP)
        case "long", "local-timestamp-millis":
            return Leaf(pa.timestamp("us"), _micros)
        case "long", "local-timestamp-micros":
            return Leaf(pa.timestamp("us"))
        case "bytes" | "fixed", "decimal":
            return _decimal(type_.props.get("precision"), type_.props.get("scale", 0))
        case "fixed", "uuid":
            return Leaf(pa.string(), _uuid)
    return None


def _decimal(precision: Any, scale: Any) -> Leaf | None:
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        return None  # Avro ignores invalid logical types
    if precision > MAX_DIGITS:
        return Leaf(pa.string(), lambda value: str(_number(scale, value)))
    return Leaf(pa.decimal128(precision, scale), partial(_number, scale))


def _number(scale: int, value: Any) -> Decimal:
    if isinstance(raw := untagged(value), Decimal):  # the writer's scale differs
        return raw
    return _EXACT.scaleb(Decimal(int.from_bytes(raw, "big", signed=True)), -scale)


def _micros(milliseconds: int) -> int:
    return milliseconds * 1000


def _uuid(value: Any) -> str:
    return str(uuid.UUID(bytes=untagged(value)))


def _plain_json(value: Any) -> str:
    return as_json(_plain(value))


def _plain(value: Any) -> Any:
    """Return a value without the type names of fastavro."""
    match untagged(value):
        case dict() as found:
            return {key: _plain(part) for key, part in found.items()}
        case list() as found:
            return [_plain(part) for part in found]
        case found:
            return found


def untagged(value: Any) -> Any:
    """Return a value without its type's name."""
    return value[1] if type(value) is tuple else value


def branch_fields(branches: Sequence[AvroType], shapes: Sequence[Shape]) -> Iterator[Field]:
    """Yield a field for each branch, with the name of its type."""
    names = [each.name.simple if each.name else each.kind for each in branches]
    if len(set(names)) < len(names):  # in different namespaces
        names = [each.name.full.replace(".", "_") if each.name else each.kind for each in branches]
    for number, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        yield Field(name, partial(_if_branch, tuple(branches), number), shape)


def _if_branch(branches: tuple[AvroType, ...], number: int, value: Any) -> Any:
    return untagged(value) if _branch(branches, value) == number else None


def _branch(branches: tuple[AvroType, ...], value: Any) -> int:
    if type(value) is tuple:
        for number, each in enumerate(branches):
            if each.name and value[0] in {each.name.full, *(alias.full for alias in each.aliases)}:
                return number
        value = value[1]
    kinds = [each.kind for each in branches]
    if not isinstance(value, dict):
        return next(kinds.index(kind) for kind in _BRANCHES[type(value)] if kind in kinds)
    for number, each in enumerate(branches):
        if each.kind in {"record", "error"} and {field.name for field in each.fields} == value.keys():
            return number
    return kinds.index("map")
