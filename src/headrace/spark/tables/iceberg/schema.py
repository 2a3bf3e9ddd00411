"""The types of Iceberg and Spark, and the schema of a new table."""

import itertools
from collections.abc import Iterator
from typing import Final

from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyspark.sql import types as spark

from headrace.spark.tables.schema import UnfitTable

_SAME: Final[dict[type[iceberg.IcebergType], spark.DataType]] = {
    iceberg.BinaryType: spark.BinaryType(),
    iceberg.BooleanType: spark.BooleanType(),
    iceberg.DateType: spark.DateType(),
    iceberg.DoubleType: spark.DoubleType(),
    iceberg.FloatType: spark.FloatType(),
    iceberg.IntegerType: spark.IntegerType(),
    iceberg.LongType: spark.LongType(),
    iceberg.StringType: spark.StringType(),
    iceberg.TimestampType: spark.TimestampNTZType(),
    iceberg.TimestamptzType: spark.TimestampType(),
}


class Foreign(spark.DataType):
    """A type of Iceberg that Spark does not have: no column fits."""

    def __init__(self, name: str) -> None:
        self._name = name

    def simpleString(self) -> str:  # noqa: N802
        return self._name


def spark_schema(schema: Schema | iceberg.StructType) -> spark.StructType:
    """Return the columns that a DataFrame has to have."""
    return spark.StructType(
        [spark.StructField(each.name, _spark_type(each.field_type), each.optional) for each in schema.fields]
    )


def _spark_type(kind: iceberg.IcebergType) -> spark.DataType:
    if isinstance(kind, iceberg.StructType):
        return spark_schema(kind)
    if isinstance(kind, iceberg.ListType):
        return spark.ArrayType(_spark_type(kind.element_type), not kind.element_required)
    if isinstance(kind, iceberg.MapType):
        return spark.MapType(
            _spark_type(kind.key_type), _spark_type(kind.value_type), not kind.value_required
        )
    if isinstance(kind, iceberg.DecimalType):
        return spark.DecimalType(kind.precision, kind.scale)
    return _SAME.get(type(kind)) or Foreign(str(kind))


def widened(schema: spark.StructType, path: tuple[str, ...] = ()) -> spark.StructType:
    """Return the schema with int instead of the smaller integers, which Iceberg does not have.

    UnfitTable is raised for a variant: Iceberg has that type, but pyiceberg 0.12 does not.
    """
    return spark.StructType(
        [
            spark.StructField(each.name, _wide(each.dataType, (*path, each.name)), each.nullable)
            for each in schema.fields
        ]
    )


def _wide(kind: spark.DataType, path: tuple[str, ...]) -> spark.DataType:
    if isinstance(kind, spark.StructType):
        return widened(kind, path)
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_wide(kind.elementType, path), kind.containsNull)
    if isinstance(kind, spark.MapType):
        return spark.MapType(_wide(kind.keyType, path), _wide(kind.valueType, path), kind.valueContainsNull)
    if isinstance(kind, spark.VariantType):
        column = ".".join(path)
        raise UnfitTable(
            f"column {column!r} is variant, which pyiceberg cannot write: store it as text, to_json({column})"
        )
    return spark.IntegerType() if isinstance(kind, spark.ByteType | spark.ShortType) else kind


def iceberg_schema(schema: spark.StructType) -> Schema:
    """Return the schema of a new table; the ids of columns are unique, and the catalog assigns others."""
    return Schema(*_fields(schema, itertools.count(1)))


def iceberg_type(kind: spark.DataType) -> iceberg.IcebergType:
    """Return the type of a new column."""
    return _iceberg_type(kind, itertools.count(1))


def _fields(schema: spark.StructType, ids: Iterator[int]) -> list[iceberg.NestedField]:
    return [
        iceberg.NestedField(next(ids), each.name, _iceberg_type(each.dataType, ids), required=False)
        for each in schema.fields
    ]


def _iceberg_type(kind: spark.DataType, ids: Iterator[int]) -> iceberg.IcebergType:
    if isinstance(kind, spark.StructType):
        return iceberg.StructType(*_fields(kind, ids))
    if isinstance(kind, spark.ArrayType):
        return iceberg.ListType(next(ids), _iceberg_type(kind.elementType, ids), element_required=False)
    if isinstance(kind, spark.MapType):
        key_id, value_id = next(ids), next(ids)
        key, value = _iceberg_type(kind.keyType, ids), _iceberg_type(kind.valueType, ids)
        return iceberg.MapType(key_id, key, value_id, value, value_required=False)
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    (found,) = (mine for mine, other in _SAME.items() if other == kind)
    return found()
