"""Avro without Spark's jar: its types as Spark's, and a function that decodes bytes by fastavro."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from pyspark.sql import Column

_PRIMITIVES: Final[dict[str, DataType]] = {
    "boolean": BooleanType(),
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "bytes": BinaryType(),
    "fixed": BinaryType(),
    "string": StringType(),
    "enum": StringType(),
}
_LOGICAL: Final[dict[str, DataType]] = {
    "date": DateType(),
    "timestamp-millis": TimestampType(),
    "timestamp-micros": TimestampType(),
    "local-timestamp-millis": TimestampNTZType(),
    "local-timestamp-micros": TimestampNTZType(),
}
"""Those that mean something to Spark. Without the others a time is a number, and a uuid a string."""


def decoder(schema: Any) -> "tuple[Callable[[Column], Column], list[str]]":
    """A function of a column of bytes, and the names of the fields it finds: struct<row, reason>."""
    try:
        import fastavro  # noqa: PLC0415  an optional package
    except ImportError as error:
        raise PipelineError("decoding Avro needs fastavro: pip install 'headrace[spark]'") from error
    try:
        schema = _plain(schema)
        parsed = fastavro.parse_schema(schema)
    except Exception as error:  # it has many, for many mistakes
        raise PipelineError(f"the Avro schema is wrong: {error}") from error
    kind = spark_type(schema)
    if not isinstance(kind, StructType):
        raise PipelineError("the Avro schema is of no record: only a record's fields can become columns")
    names = kind.fieldNames()

    def decode(value: bytes | None) -> tuple[Any, str | None]:
        if value is None:
            return None, None
        stream = io.BytesIO(value)
        try:
            found: Any = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # noqa: BLE001  whatever it is, the row is what is wrong
            return None, f"it is no such Avro record: {type(error).__name__}: {error}"
        if stream.tell() != len(value):
            return None, f"{len(value) - stream.tell()} bytes follow the Avro record"
        return tuple(found[name] for name in names), None

    outcome = StructType([StructField("row", kind), StructField("reason", StringType())])
    return F.udf(decode, outcome, useArrow=True), names


def spark_type(schema: Any) -> DataType:
    """The type that values of an Avro type have in Spark."""
    if isinstance(schema, list):
        return _of_union(schema)
    if isinstance(schema, str):
        schema = {"type": schema}
    kind = schema["type"]
    if isinstance(kind, dict | list):
        return spark_type(kind)
    if schema.get("logicalType") == "decimal":
        return DecimalType(schema["precision"], schema.get("scale", 0))
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if kind == "record":
        return StructType([StructField(each["name"], spark_type(each["type"])) for each in schema["fields"]])
    if kind == "array":
        return ArrayType(spark_type(schema["items"]))
    if kind == "map":
        return MapType(StringType(), spark_type(schema["values"]))
    if kind in _PRIMITIVES:
        return _PRIMITIVES[kind]
    raise PipelineError(f"the Avro type {kind!r} has no counterpart in Spark; name it where it is used")


def _plain(schema: Any) -> Any:
    """The schema without the logical types that Spark has no counterpart for."""
    if isinstance(schema, list):
        return [_plain(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _plain(value) for name, value in schema.items() if name not in {"logicalType", "default"}}
    if schema.get("logicalType") in {*_LOGICAL, "decimal"}:
        found["logicalType"] = schema["logicalType"]
    return found


def _of_union(schema: list[Any]) -> DataType:
    others = [each for each in schema if each != "null"]
    if len(others) == 1:
        return spark_type(others[0])
    raise PipelineError(f"a union of {others} has no counterpart in Spark: only null and one other type have")
