"""The changes to a table's schema that a DataFrame needs, as far as the rules of its sink allow them.

New columns are added and types are widened, also in structs, lists and the values of maps. Columns are
renamed or dropped only if a rule names them. Without rules, a DataFrame that does not fit is refused.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from headrace.spark.tables.schema import UnfitTable, check_fit, storable

RULES: Final = ("add", "widen")
_RANKS: Final[tuple[tuple[type[DataType], ...], ...]] = (
    (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType),
    (spark.FloatType, spark.DoubleType),
)
ELEMENT: Final = "element"  # in the paths of changes, as in Iceberg
VALUE: Final = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The changes that a sink may make.

    renames: new names of columns by their old ones.
    drops: columns that are dropped from the table.
    required: columns that an existing table has to have: they are widened, but not added or extended.
    """

    add: bool = False
    widen: bool = False
    renames: Mapping[str, str] = field(default_factory=dict)
    drops: tuple[str, ...] = ()
    required: Collection[str] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.widen or self.renames or self.drops)


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a schema: a new column, a wider type, another name, or a dropped column."""

    kind: Literal["rename", "drop", "add", "widen"]
    path: tuple[str, ...]
    type: DataType | None = None
    name: str | None = None  # of a renamed column

    def __str__(self) -> str:
        column = ".".join(self.path)
        if self.type is not None:
            kind = self.type.simpleString()
            return f"add {column} {kind}" if self.kind == "add" else f"widen {column} to {kind}"
        return f"rename {column} to {self.name}" if self.kind == "rename" else f"drop {column}"


def changes(given: StructType, table: StructType, rules: Rules, *, add_column: str) -> list[Change]:
    """Return the changes after which rows of `given` fit `table`; UnfitTable if the rules do not allow them.

    `add_column` says how to add a column without a rule.
    """
    if not rules:
        check_fit(given, table, add_column=add_column)
        return []
    found = []
    for old, new in rules.renames.items():
        if old not in table.fieldNames():
            continue  # it has been renamed before
        if new in table.fieldNames():
            raise UnfitTable(
                f"column {old!r} cannot be renamed to {new!r}: the table has both. Drop one, or the rule"
            )
        if old in given.fieldNames():
            raise UnfitTable(
                f"column {old!r} is to be renamed to {new!r} in the table, and the DataFrame has {old!r}: "
                "rename it in the DataFrame, too"
            )
        if new in given.fieldNames():
            found.append(Change("rename", (old,), name=new))
    for name in rules.drops:
        if name in given.fieldNames():
            raise UnfitTable(f"column {name!r} is to be dropped from the table, and the DataFrame has it")
        if name in table.fieldNames():
            found.append(Change("drop", (name,)))
    stored = applied(table, found)
    _check_names(given, stored, rules)
    found += _struct_changes(given, stored, rules, ())
    _check_missing(given, stored, ())
    return found


def _check_names(given: StructType, table: StructType, rules: Rules) -> None:
    by_lower = {name.lower(): name for name in table.fieldNames()}
    for column in given.fields:
        known = by_lower.get(column.name.lower(), column.name)
        if known != column.name:
            raise UnfitTable(f"column {column.name!r} is called {known!r} in the table: rename it")
        if column.name in table.fieldNames():
            continue
        if column.name in rules.required:
            raise UnfitTable(
                f"column {column.name!r} is not in the table, whose rows upserts find and compare by it: "
                "write to another table"
            )
        if not rules.add:
            raise UnfitTable(f'column {column.name!r} is not in the table: drop it, or set evolve to "add"')


def _check_missing(given: StructType, table: StructType, path: tuple[str, ...]) -> None:
    for stored in table.fields:
        if stored.name not in given.fieldNames() and not stored.nullable:
            column = ".".join((*path, stored.name))
            raise UnfitTable(
                f"column {column!r} of the table is not nullable, and missing in the DataFrame: add it"
            )


def _struct_changes(
    given: StructType, table: StructType, rules: Rules, path: tuple[str, ...]
) -> Iterator[Change]:
    if path and path[0] in rules.required and given.fieldNames() != table.fieldNames():
        raise _unfit(given, table, path)
    for column in given.fields:
        inner = (*path, column.name)
        if column.name in table.fieldNames():
            if path and column.nullable and not table[column.name].nullable:
                raise _unfit(given, table, path)
            yield from _type_changes(column.dataType, table[column.name].dataType, rules, inner)
        elif rules.add:
            yield Change("add", inner, storable(StructType([column]))[column.name].dataType)
        else:
            raise _unfit(given, table, path)
    if path:
        _check_missing(given, table, path)


def _type_changes(given: DataType, table: DataType, rules: Rules, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(given, StructType) and isinstance(table, StructType):
        yield from _struct_changes(given, table, rules, path)
    elif isinstance(given, ArrayType) and isinstance(table, ArrayType):
        if given.containsNull and not table.containsNull:
            raise _unfit(given, table, path)
        yield from _type_changes(given.elementType, table.elementType, rules, (*path, ELEMENT))
    elif isinstance(given, MapType) and isinstance(table, MapType):
        has_nulls = given.valueContainsNull and not table.valueContainsNull
        if given.keyType != table.keyType or has_nulls:
            raise _unfit(given, table, path)
        yield from _type_changes(given.valueType, table.valueType, rules, (*path, VALUE))
    elif given != table:
        if not is_wider(given, table) and not is_wider(table, given):
            raise _unfit(given, table, path)
        if not rules.widen:
            raise _unfit(given, table, path, ', or set evolve to "widen"')
        if is_wider(given, table):
            yield Change("widen", path, given)


def is_wider(one: DataType, other: DataType) -> bool:
    """Return whether every value of `other` is one of `one`, without rounding: bigint is wider than int."""
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        return one.scale == other.scale and one.precision > other.precision
    return any(
        type(one) in ranks and type(other) in ranks and ranks.index(type(one)) > ranks.index(type(other))
        for ranks in _RANKS
    )


def _unfit(given: DataType, table: DataType, path: Sequence[str], hint: str = "") -> UnfitTable:
    return UnfitTable(
        f"column {'.'.join(path)!r} is {table.simpleString()} in the table, and {given.simpleString()} in "
        f"the DataFrame: cast it{hint}, or write to another table"
    )


def applied(table: StructType, found: Sequence[Change]) -> StructType:
    """Return the schema after these changes."""
    for change in found:
        table = _applied_to_struct(table, change, change.path)
    return table


def _applied_to_struct(table: StructType, change: Change, path: tuple[str, ...]) -> StructType:
    name, rest = path[0], path[1:]
    if change.kind == "add" and not rest:
        assert change.type is not None, change
        return StructType([*table.fields, StructField(name, change.type)])
    fields = []
    for column in table.fields:
        if column.name != name:
            fields.append(column)
        elif change.kind == "rename":
            fields.append(StructField(change.name or name, column.dataType, column.nullable, column.metadata))
        elif change.kind != "drop":
            kind = _applied(column.dataType, change, rest)
            fields.append(StructField(name, kind, column.nullable, column.metadata))
    return StructType(fields)


def _applied(table: DataType, change: Change, path: tuple[str, ...]) -> DataType:
    if not path:
        assert change.type is not None, change
        return change.type
    if isinstance(table, ArrayType):
        return ArrayType(_applied(table.elementType, change, path[1:]), table.containsNull)
    if isinstance(table, MapType):
        value = _applied(table.valueType, change, path[1:])
        return MapType(table.keyType, value, table.valueContainsNull)
    assert isinstance(table, StructType), (table, path)
    return _applied_to_struct(table, change, path)


def written(given: StructType, table: StructType) -> StructType:
    """Return the columns of `given` with the types of the table, which files are written with."""
    return StructType([StructField(column.name, table[column.name].dataType) for column in given.fields])
