"""Avro's types as columns."""

import uuid
from decimal import Context, Decimal
from functools import partial
from operator import itemgetter
from typing import Any, Final

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from headrace.pipeline.registry.avro_unions import branch_fields, untagged
from headrace.pipeline.registry.shapes import ANYTHING, Array, Field, Leaf, Map, Shape, Struct, as_json
from headrace.registry.formats.avro_types import AvroType

MOST_DIGITS: Final = 38  # of a decimal in Spark
_EXACT: Final = Context(prec=1000)
_PRIMITIVES: Final[dict[str, DataType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "string": StringType(),
}
_NUMBERS: Final = ({"int", "long"}, LongType()), ({"int", "long", "float", "double"}, DoubleType())


def shape_of(type_: AvroType, around: tuple[AvroType, ...] = ()) -> Shape:
    """The shape of a type's values as fastavro gives them: logical types as the numbers or bytes they are."""
    match type_.kind:
        case "record" | "error":
            return _record(type_, around)
        case "array":
            return Array(shape_of(type_.inner, around))
        case "map":
            return Map(Leaf(StringType()), shape_of(type_.inner, around))
        case "union":
            return _union(type_, around)
        case "enum":
            return Leaf(StringType(), untagged)
        case "null":
            return ANYTHING
    return _logical(type_) or Leaf(_PRIMITIVES[type_.kind], untagged if type_.kind == "fixed" else None)


def _record(type_: AvroType, around: tuple[AvroType, ...]) -> Shape:
    if type_ in around or not type_.fields:  # Spark knows no type that has itself as a part, or no parts
        return Leaf(StringType(), _plain_json)
    inside = (*around, type_)
    fields = (Field(each.name, itemgetter(each.name), shape_of(each.type, inside)) for each in type_.fields)
    return Struct(tuple(fields), untagged)


def _union(type_: AvroType, around: tuple[AvroType, ...]) -> Shape:
    others = [each for each in type_.branches if each.kind != "null"]
    if len(others) == 1:
        return shape_of(others[0], around)
    for kinds, wide in _NUMBERS:
        if others and {each.kind for each in others} <= kinds and not any(map(_logical, others)):
            return Leaf(wide, float if isinstance(wide, DoubleType) else None)
    if not others:
        return ANYTHING
    shapes = [shape_of(each, around) for each in others]
    return Struct(tuple(branch_fields(others, shapes)))


def _logical(type_: AvroType) -> Leaf | None:
    """Those that mean something to Spark. Without the others a time of day is a number."""
    match type_.kind, type_.props.get("logicalType"):
        case "int", "date":
            return Leaf(DateType())
        case "long", "timestamp-millis":
            return Leaf(TimestampType(), _micros)
        case "long", "timestamp-micros":
            return Leaf(TimestampType())
        case "long", "local-timestamp-millis":
            return Leaf(TimestampNTZType(), _micros)
        case "long", "local-timestamp-micros":
            return Leaf(TimestampNTZType())
        case "bytes" | "fixed", "decimal":
            return _decimal(type_.props.get("precision"), type_.props.get("scale", 0))
        case "fixed", "uuid":
            return Leaf(StringType(), _uuid)
    return None


def _decimal(precision: Any, scale: Any) -> Leaf | None:
    if not isinstance(precision, int) or not isinstance(scale, int) or not 0 <= scale <= precision:
        return None  # Avro ignores a logical type that is wrong
    if precision > MOST_DIGITS:
        return Leaf(StringType(), lambda value: str(_number(scale, value)))
    return Leaf(DecimalType(precision, scale), partial(_number, scale))


def _number(scale: int, value: Any) -> Decimal:
    if isinstance(raw := untagged(value), Decimal):  # the writer's scale is another one
        return raw
    return _EXACT.scaleb(Decimal(int.from_bytes(raw, "big", signed=True)), -scale)


def _micros(milliseconds: int) -> int:
    return milliseconds * 1000


def _uuid(value: Any) -> str:
    return str(uuid.UUID(bytes=untagged(value)))


def _plain_json(value: Any) -> str:
    return as_json(_plain(value))


def _plain(value: Any) -> Any:
    """Without the names that fastavro gives to parts of unions."""
    match untagged(value):
        case dict() as found:
            return {key: _plain(part) for key, part in found.items()}
        case list() as found:
            return [_plain(part) for part in found]
        case found:
            return found
