"""Avro types as columns.

A union of null and one other type is a nullable column, and so is a union of numbers. Any other union is a
struct with a field for each branch, of which one is set. fastavro names the type of such a value, as
("shop.Order", {...}), if the type has a name, and so does the resolution of schemas; otherwise the value
itself determines the branch.
"""

import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal
from functools import partial
from operator import itemgetter, mul
from typing import Any, Final

import pyarrow as pa

from headrace.registry.formats.avro.types import AvroType
from headrace.tables.registry.shapes import (
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
    str: ("string",),
    bytes: ("bytes",),
    list: ("array",),
    dict: ("map",),  # records have names
    type(None): ("null",),
}
_MICROS: Final = partial(mul, 1000)  # of milliseconds
_INTEGERS: Final = {"int", "long"}
_NUMBERS: Final = {*_INTEGERS, "float", "double"}


def shape_of(type_: AvroType, around: tuple[AvroType, ...] = ()) -> Shape:
    """Return the shape of the values that fastavro returns; logical types are numbers or bytes."""
    match type_.kind:
        case "record" | "error":
            if type_ in around or not type_.fields:  # columns have no recursive or empty structs
                return Leaf(pa.string(), lambda value: as_json(_plain(value)))
            inside = (*around, type_)
            fields = (
                Field(each.name, itemgetter(each.name), shape_of(each.type, inside)) for each in type_.fields
            )
            return Struct(tuple(fields), untagged)
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


def _union(type_: AvroType, around: tuple[AvroType, ...]) -> Shape:
    others = _others(type_)
    if not others:
        return ANYTHING
    if is_tagged(type_):
        return Struct(tuple(branch_fields(others, [shape_of(other, around) for other in others])))
    if len(others) == 1:
        return shape_of(others[0], around)
    return Leaf(pa.int64() if {other.kind for other in others} <= _INTEGERS else pa.float64())


def _others(union: AvroType) -> list[AvroType]:
    return [branch for branch in union.branches if branch.kind != "null"]


def is_tagged(union: AvroType) -> bool:
    """Return whether the column of a union is a struct, so that values need the name of their branch."""
    others = _others(union)
    return len(others) > 1 and not (
        {other.kind for other in others} <= _NUMBERS and not any(map(_logical, others))
    )


def tag_of(branch: AvroType) -> str:
    """Return the name of a branch: that of its type, or its kind."""
    return branch.name.full if branch.name else branch.kind


def _logical(type_: AvroType) -> Leaf | None:
    """Return the shape of a logical type that columns have; others are plain numbers or strings."""
    match type_.kind, type_.props.get("logicalType"):
        case "int", "date":
            return Leaf(pa.date32())
        case "long", "timestamp-millis":
            return Leaf(TIMESTAMP, _MICROS)
        case "long", "timestamp-micros":
            return Leaf(TIMESTAMP)
        case "long", "local-timestamp-millis":
            return Leaf(pa.timestamp("us"), _MICROS)
        case "long", "local-timestamp-micros":
            return Leaf(pa.timestamp("us"))
        case "bytes" | "fixed", "decimal":
            precision, scale = type_.props.get("precision"), type_.props.get("scale", 0)
            if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
                return None  # Avro ignores invalid logical types
            if precision > MAX_DIGITS:
                return Leaf(pa.string(), lambda value: str(_number(scale, value)))
            return Leaf(pa.decimal128(precision, scale), partial(_number, scale))
        case "fixed", "uuid":
            return Leaf(pa.string(), lambda value: str(uuid.UUID(bytes=untagged(value))))
    return None


def decimal_of(type_: AvroType) -> Callable[[Any], Decimal] | None:
    """Return the function from the bytes of a decimal to its value; None if the type is not valid."""
    scale = type_.props.get("scale", 0)
    return None if _logical(type_) is None else partial(_number, scale)


def _number(scale: int, value: Any) -> Decimal:
    if isinstance(raw := untagged(value), Decimal):  # the writer's scale differs
        return raw
    return _EXACT.scaleb(Decimal(int.from_bytes(raw, "big", signed=True)), -scale)


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
    return value[1] if type(value) is tuple else value


def branch_fields(branches: Sequence[AvroType], shapes: Sequence[Shape]) -> Iterator[Field]:
    """Yield a field for each branch, with the name of its type."""
    names = [branch.name.simple if branch.name else branch.kind for branch in branches]
    if len(set(names)) < len(names):  # in different namespaces
        names = [branch.name.full.replace(".", "_") if branch.name else branch.kind for branch in branches]
    for number, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        yield Field(name, partial(_if_branch, tuple(branches), number), shape)


def _if_branch(branches: tuple[AvroType, ...], number: int, value: Any) -> Any:
    return untagged(value) if branch_of(branches, value) == number else None


def branch_of(branches: Sequence[AvroType], value: Any) -> int:
    if type(value) is tuple:
        return next(number for number, each in enumerate(branches) if tag_of(each) == value[0])
    kinds = [branch.kind for branch in branches]
    return next(kinds.index(kind) for kind in _BRANCHES[type(value)] if kind in kinds)
