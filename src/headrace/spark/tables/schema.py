"""Does a DataFrame fit a table? Asked before anything is written, answered by the column's name.

A table's columns are found by name, not by place. A column of the table that the DataFrame does not have is
null in the new rows. A column that the table does not have is refused rather than added: a misspelt name
would change the table for everybody.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from headrace.spark.errors import InvalidOption, SparkError

_PLAIN: Final = (
    BinaryType,
    BooleanType,
    ByteType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    TimestampNTZType,
    TimestampType,
)
PARTITIONING: Final = (StringType, ByteType, ShortType, IntegerType, LongType, BooleanType, DateType)


class TableUnavailable(SparkError):
    """The table, or its catalog, cannot be opened, made or written to."""


class UnfitTable(SparkError):
    """The DataFrame's columns and the table's do not go together."""


def storable(schema: StructType) -> StructType:
    """The schema as a new table gets it: everything may be null, and Spark's notes on columns are gone.

    UnfitTable names a column whose type tables do not have.
    """
    seen: dict[str, str] = {}
    for name in schema.fieldNames():
        if name.lower() in seen:
            raise UnfitTable(f"columns {seen[name.lower()]!r} and {name!r} are one to a table: rename one")
        seen[name.lower()] = name
    return StructType([StructField(each.name, _storable(each.dataType, each.name)) for each in schema.fields])


def _storable(kind: DataType, column: str) -> DataType:
    if isinstance(kind, StructType):
        return StructType(
            [StructField(e.name, _storable(e.dataType, f"{column}.{e.name}")) for e in kind.fields]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_storable(kind.elementType, column))
    if isinstance(kind, MapType):
        return MapType(_storable(kind.keyType, column), _storable(kind.valueType, column))
    if isinstance(kind, _PLAIN):
        return kind
    if isinstance(kind, StringType) and kind.simpleString() == "string":
        return StringType()
    raise UnfitTable(
        f"column {column!r} is {kind.simpleString()}, which a table cannot hold: cast it to another type, "
        "for instance string, or drop it"
    )


def check_fit(given: StructType, table: StructType, *, add_column: str) -> None:
    """UnfitTable if rows of `given` cannot be added to `table`; `add_column` says how it gets another one."""
    known = {each.name: each for each in table.fields}
    by_lower = {name.lower(): name for name in known}
    for field in given.fields:
        if field.name not in known:
            raise UnfitTable(_unknown(field, by_lower, add_column))
        wanted = known[field.name].dataType
        if not _fits(field.dataType, wanted):
            raise UnfitTable(
                f"column {field.name!r} is {wanted.simpleString()} in the table, and "
                f"{field.dataType.simpleString()} here: cast it, or write to another table"
            )
    for name, field in known.items():
        if name not in given.fieldNames() and not field.nullable:
            raise UnfitTable(f"column {name!r} of the table must not be null, and is missing here: add it")


def _unknown(field: StructField, by_lower: Mapping[str, str], add_column: str) -> str:
    if field.name.lower() in by_lower:
        return f"column {field.name!r} is called {by_lower[field.name.lower()]!r} in the table: rename it"
    return f"column {field.name!r} is not in the table: drop it, or add it to the table first, {add_column}"


def _fits(given: DataType, wanted: DataType) -> bool:
    """Whether it is the same type, and no null within it can be one that the table forbids."""
    if isinstance(given, StructType) and isinstance(wanted, StructType):
        return given.fieldNames() == wanted.fieldNames() and all(
            _fits(each.dataType, wanted[each.name].dataType)
            and (wanted[each.name].nullable or not each.nullable)
            for each in given.fields
        )
    if isinstance(given, ArrayType) and isinstance(wanted, ArrayType):
        allowed = wanted.containsNull or not given.containsNull
        return allowed and _fits(given.elementType, wanted.elementType)
    if isinstance(given, MapType) and isinstance(wanted, MapType):
        allowed = wanted.valueContainsNull or not given.valueContainsNull
        return allowed and _fits(given.keyType, wanted.keyType) and _fits(given.valueType, wanted.valueType)
    return given == wanted


def check_partitioning(columns: Iterable[str], schema: StructType) -> None:
    """InvalidOption if a table of that schema cannot be divided by these columns."""
    known = {each.name: each.dataType for each in schema.fields}
    for name in columns:
        if name not in known:
            raise InvalidOption("partitionBy", f"there is no column {name!r}; there are {', '.join(known)}")
        if not isinstance(known[name], PARTITIONING):
            raise InvalidOption(
                "partitionBy",
                f"column {name!r} is {known[name].simpleString()}: divide by a string, a whole number, "
                "a boolean or a date that is made of it",
            )
    if known and set(columns) == set(known):
        raise InvalidOption("partitionBy", "no column is left for the files: leave one out")
