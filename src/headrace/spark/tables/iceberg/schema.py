"""The types of Iceberg and Spark, the schema of a new table, and changes to that of an existing one.

A change needs no rewriting, because columns have ids.
"""

import itertools
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pyiceberg import types as iceberg
from pyiceberg.schema import Schema
from pyspark.sql import types as spark

from headrace.spark.tables.attempts import ATTEMPTS, attempts
from headrace.spark.tables.evolution import Rules, changes
from headrace.spark.tables.iceberg.table import WHAT, without_retries
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from headrace.spark.tables.evolution import Change

_ADD_COLUMN: Final = "with pyiceberg: table.update_schema().add_column(...)"

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

logger = logging.getLogger(__name__)


class Foreign(spark.DataType):
    """A type of Iceberg that Spark does not have: no column fits."""

    def __init__(self, name: str) -> None:
        self._name = name

    def simpleString(self) -> str:  # noqa: N802
        return self._name


def spark_schema(schema: Schema | iceberg.StructType) -> spark.StructType:
    """Return the columns that a DataFrame has to have."""
    return spark.StructType(
        [
            spark.StructField(field.name, _spark_type(field.field_type), field.optional)
            for field in schema.fields
        ]
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


def widened(schema: spark.StructType) -> spark.StructType:
    """Return the schema with int instead of the smaller integers, which Iceberg does not have."""
    return spark.StructType(
        [spark.StructField(field.name, _wide(field.dataType), field.nullable) for field in schema.fields]
    )


def _wide(kind: spark.DataType) -> spark.DataType:
    if isinstance(kind, spark.StructType):
        return widened(kind)
    if isinstance(kind, spark.ArrayType):
        return spark.ArrayType(_wide(kind.elementType), kind.containsNull)
    if isinstance(kind, spark.MapType):
        return spark.MapType(_wide(kind.keyType), _wide(kind.valueType), kind.valueContainsNull)
    return spark.IntegerType() if isinstance(kind, spark.ByteType | spark.ShortType) else kind


def iceberg_schema(schema: spark.StructType) -> Schema:
    """Return the schema of a new table; the ids of columns are unique, and the catalog assigns others."""
    return Schema(*_fields(schema, itertools.count(1)))


def _fields(schema: spark.StructType, ids: Iterator[int]) -> list[iceberg.NestedField]:
    return [
        iceberg.NestedField(next(ids), field.name, iceberg_type(field.dataType, ids), required=False)
        for field in schema.fields
    ]


def iceberg_type(kind: spark.DataType, ids: Iterator[int]) -> iceberg.IcebergType:
    """Return the type of a new column; `ids` are those of its inner fields."""
    if isinstance(kind, spark.StructType):
        return iceberg.StructType(*_fields(kind, ids))
    if isinstance(kind, spark.ArrayType):
        return iceberg.ListType(next(ids), iceberg_type(kind.elementType, ids), element_required=False)
    if isinstance(kind, spark.MapType):
        key_id, value_id = next(ids), next(ids)
        key, value = iceberg_type(kind.keyType, ids), iceberg_type(kind.valueType, ids)
        return iceberg.MapType(key_id, key, value_id, value, value_required=False)
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    (found,) = (mine for mine, other in _SAME.items() if other == kind)
    return found()


def needed_changes(table: "Table", schema: spark.StructType, rules: Rules) -> "list[Change]":
    """Return the changes that the table needs; UnfitTable if rows of this schema do not fit."""
    found = changes(widened(schema), spark_schema(table.schema()), rules, add_column=_ADD_COLUMN)
    sources = {field.source_id for field in table.spec().fields}
    for change in found:
        if change.kind == "drop" and table.schema().find_field(change.path[0]).field_id in sources:
            raise UnfitTable(f"column {change.path[0]!r} cannot be dropped: the table is partitioned by it")
    return found


def evolve(table: "Table", schema: spark.StructType, rules: Rules) -> None:
    """Change the table until rows of this schema fit. Another writer may change it at the same time."""
    failed = needed("pyiceberg.exceptions", WHAT).CommitFailedException
    for attempt in attempts():
        found = needed_changes(table, schema, rules)
        if not found:
            return
        # pyiceberg finds columns by their names before the update: other changes need another update.
        found = [change for change in found if change.kind in ("rename", "drop")] or found
        try:
            with without_retries(table).update_schema() as update:
                for change in found:
                    if change.kind == "rename":
                        update.rename_column(change.path, change.name)
                    elif change.kind == "drop":
                        update.delete_column(change.path)
                    else:
                        act = update.add_column if change.kind == "add" else update.update_column
                        act(change.path, iceberg_type(change.type, itertools.count(1)))
        except failed:
            if attempt == ATTEMPTS:
                raise
            table.refresh()
        else:
            logger.info("%s: %s", ".".join(table.name()), ", ".join(map(str, found)))
    raise UnfitTable("other writers change the table's schema again and again, and the batch does not fit")
