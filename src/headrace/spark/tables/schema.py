"""The schema of a new table, and what it may be partitioned by."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from headrace.spark.errors import InvalidOption, SparkError

_INTEGERS: Final = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
_TIMES: Final = (spark.DateType, spark.TimestampType, spark.TimestampNTZType)
_NUMBERS: Final = (*_INTEGERS, spark.DecimalType, spark.DoubleType, spark.FloatType)
_PLAIN: Final = (*_NUMBERS, *_TIMES, spark.BinaryType, spark.BooleanType)
PARTITIONING: Final = (*_INTEGERS, StringType, spark.BooleanType, spark.DateType)


class TableUnavailable(SparkError):
    """The table or its catalog cannot be opened, created or written to."""


class UnfitTable(SparkError):
    """The columns of the DataFrame do not fit the table."""


def storable(schema: StructType, *, variants: bool = False) -> StructType:
    """Return the schema of a new table: all columns are nullable, without metadata.

    UnfitTable is raised for a column whose type tables do not have. Only Delta tables have VARIANT columns.
    """
    seen: dict[str, str] = {}
    for name in schema.fieldNames():
        if name.lower() in seen:
            raise UnfitTable(
                f"columns {seen[name.lower()]!r} and {name!r} are the same column in a table: rename one"
            )
        seen[name.lower()] = name
    plain = (*_PLAIN, spark.VariantType) if variants else _PLAIN
    return StructType(
        [StructField(field.name, _storable(field.dataType, field.name, plain)) for field in schema.fields]
    )


def _storable(kind: DataType, column: str, plain: tuple[type[DataType], ...]) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [StructField(e.name, _storable(e.dataType, f"{column}.{e.name}", plain)) for e in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_storable(kind.elementType, column, plain))
    if isinstance(kind, MapType):
        return MapType(_storable(kind.keyType, column, plain), _storable(kind.valueType, column, plain))
    if isinstance(kind, plain):
        return kind
    if isinstance(kind, StringType) and kind.simpleString() == "string":
        return StringType()
    why, instead = "tables do not have", "cast it to another type, for instance string, or drop it"
    if isinstance(kind, spark.VariantType):
        why, instead = "pyiceberg cannot write", f"store it as text, to_json({column})"
    raise UnfitTable(f"column {column!r} is {kind.simpleString()}, which {why}: {instead}")


def check_partitioning(columns: Iterable[str], schema: StructType) -> None:
    """Raise InvalidOption if a table of this schema cannot be partitioned by these columns."""
    known = {field.name: field.dataType for field in schema.fields}
    for name in columns:
        if name not in known:
            raise InvalidOption(
                "partitionBy", f"there is no column {name!r}; expected one of {', '.join(known)}"
            )
        if not isinstance(known[name], PARTITIONING):
            raise InvalidOption(
                "partitionBy",
                f"column {name!r} is {known[name].simpleString()}: partition by a string, an integer, "
                "a boolean or a date that is computed from it",
            )
    if known and set(columns) == set(known):
        raise InvalidOption("partitionBy", "at least one column has to remain: leave one out")
