"""The changes to a table's schema that a DataFrame needs, as far as the rules of its sink allow them.

Columns are matched by name. A column of the table that the DataFrame lacks is null in the new rows. Only with
a rule are new columns added and types widened, also in structs, lists and the values of maps, and columns
renamed or dropped: a misspelt name would change the table for all users.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from headrace.spark.tables.schema import UnfitTable, storable

RULES: Final = ("add", "widen")
_RANKS: Final[tuple[tuple[type[DataType], ...], ...]] = (
    (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType),
    (spark.FloatType, spark.DoubleType),
)


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
    """One change to a column, with the type it has or gets. A path is as in Iceberg: `list.element.a`."""

    kind: Literal["rename", "drop", "add", "widen"]
    path: tuple[str, ...]
    type: DataType
    name: str = ""  # of a renamed column

    def __str__(self) -> str:
        kind = self.type.simpleString()
        what = {"rename": f" to {self.name}", "drop": "", "add": f" {kind}", "widen": f" to {kind}"}
        return f"{self.kind} {'.'.join(self.path)}{what[self.kind]}"


def changes(given: StructType, table: StructType, rules: Rules, *, add_column: str) -> list[Change]:
    """Return the changes after which rows of `given` fit `table`; UnfitTable if the rules do not allow them.

    `add_column` says how to add a column without a rule.
    """
    named = list(_named_changes(given, table, rules))
    table = applied(table, named)
    by_lower = {name.lower(): name for name in table.fieldNames()}
    for name in given.fieldNames():
        known_as = by_lower.get(name.lower())
        if known_as is not None and known_as != name:
            raise UnfitTable(f"column {name!r} is called {known_as!r} in the table: rename it")
        if known_as is None and name in rules.required:
            raise UnfitTable(
                f"column {name!r} is not in the table, whose rows upserts find and compare by it: "
                "write to another table"
            )
        if known_as is None and not rules.add:
            raise UnfitTable(
                f'column {name!r} is not in the table: drop it, set evolve to "add", or add it to the '
                f"table first, {add_column}"
            )
    return [*named, *_struct_changes(given, table, rules, ())]


def _named_changes(given: StructType, table: StructType, rules: Rules) -> Iterator[Change]:
    """Yield the renames and drops of the rules that the table does not have yet."""
    for old, new in rules.renames.items():
        if old not in table.fieldNames():
            continue
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
            yield Change("rename", (old,), table[old].dataType, new)
    for name in rules.drops:
        if name in given.fieldNames():
            raise UnfitTable(f"column {name!r} is to be dropped from the table, and the DataFrame has it")
        if name in table.fieldNames():
            yield Change("drop", (name,), table[name].dataType)


def _struct_changes(
    given: StructType, table: StructType, rules: Rules, path: tuple[str, ...]
) -> Iterator[Change]:
    is_fixed = bool(path) and (not rules or path[0] in rules.required)
    if is_fixed and given.fieldNames() != table.fieldNames():
        raise _unfit(given, table, path)
    for column in given.fields:
        inner = (*path, column.name)
        if column.name in table.fieldNames():
            if path and column.nullable and not table[column.name].nullable:
                raise _unfit(given, table, path)
            yield from _type_changes(column.dataType, table[column.name].dataType, rules, inner)
        elif rules.add:
            yield Change("add", inner, storable(StructType([column]), variants=True)[column.name].dataType)
        else:
            raise _unfit(given, table, path)
    for stored in table.fields:
        if stored.name not in given.fieldNames() and not stored.nullable:
            missing = ".".join((*path, stored.name))
            raise UnfitTable(
                f"column {missing!r} of the table is not nullable, and missing in the DataFrame: add it"
            )


def _type_changes(given: DataType, table: DataType, rules: Rules, path: tuple[str, ...]) -> Iterator[Change]:
    if isinstance(given, StructType) and isinstance(table, StructType):
        yield from _struct_changes(given, table, rules, path)
    elif isinstance(given, ArrayType) and isinstance(table, ArrayType):
        if given.containsNull and not table.containsNull:
            raise _unfit(given, table, path)
        yield from _type_changes(given.elementType, table.elementType, rules, (*path, "element"))
    elif isinstance(given, MapType) and isinstance(table, MapType):
        if given.valueContainsNull and not table.valueContainsNull:
            raise _unfit(given, table, path)
        yield from _type_changes(given.keyType, table.keyType, Rules(), (*path, "key"))
        yield from _type_changes(given.valueType, table.valueType, rules, (*path, "value"))
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
        changed = _applied(table, change, change.path)
        assert isinstance(changed, StructType), change
        table = changed
    return table


def _applied(table: DataType, change: Change, path: tuple[str, ...]) -> DataType:
    if not path:
        return change.type
    name, rest = path[0], path[1:]
    if isinstance(table, ArrayType):
        return ArrayType(_applied(table.elementType, change, rest), table.containsNull)
    if isinstance(table, MapType):
        return MapType(table.keyType, _applied(table.valueType, change, rest), table.valueContainsNull)
    assert isinstance(table, StructType), (table, path)
    if name not in table.fieldNames():
        return StructType([*table.fields, StructField(name, change.type)])
    new_name = change.name or name
    return StructType(
        [
            StructField(new_name, _applied(column.dataType, change, rest), column.nullable, column.metadata)
            if column.name == name
            else column
            for column in table.fields
            if column.name != name or change.kind != "drop"
        ]
    )


def written(given: StructType, table: StructType) -> StructType:
    """Return the columns of `given` with the types of the table, which files are written with."""
    return StructType([StructField(column.name, table[column.name].dataType) for column in given.fields])
