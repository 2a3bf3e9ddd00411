"""The changes that a DataFrame needs in a table, by the rules of its sink; pure."""

import pytest
from hypothesis import given as with_any
from hypothesis import strategies as st
from pyspark.sql import types as spark
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StructField, StructType

from headrace.spark.errors import InvalidOption
from headrace.spark.tables.evolution import Rules, applied, changes
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.schema import UnfitTable

INT, LONG, FLOAT, DOUBLE = spark.IntegerType(), spark.LongType(), spark.FloatType(), spark.DoubleType()
STRING = spark.StringType()
ALL = Rules(add=True, widen=True)


def struct(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def found(given: StructType, table: StructType, rules: Rules = ALL) -> list[str]:
    return [str(each) for each in changes(given, table, rules, add_column="by hand")]


def test_new_columns_are_added_and_numbers_widened() -> None:
    table = struct(id=INT, price=FLOAT, amount=DecimalType(10, 2), small=spark.ShortType())
    given = struct(id=LONG, price=DOUBLE, amount=DecimalType(12, 2), item=STRING, small=INT)

    assert found(given, table) == [
        "widen id to bigint",
        "widen price to double",
        "widen amount to decimal(12,2)",
        "add item string",
        "widen small to int",
    ]


def test_a_table_that_is_wider_or_has_more_columns_stays_as_it_is() -> None:
    table = struct(id=LONG, price=DOUBLE, more=STRING, inner=struct(a=LONG, b=STRING))
    assert found(struct(id=INT, price=FLOAT, inner=struct(b=STRING)), table) == []


def test_columns_in_structs_lists_and_maps_change_too() -> None:
    table = struct(
        inner=struct(a=INT),
        list=ArrayType(struct(a=INT)),
        map=MapType(STRING, struct(a=FLOAT)),
        n=ArrayType(INT),
    )
    given = struct(
        inner=struct(a=LONG, b=STRING),
        list=ArrayType(struct(a=INT, c=INT)),
        map=MapType(STRING, struct(a=DOUBLE)),
        n=ArrayType(LONG),
    )
    assert found(given, table) == [
        "widen inner.a to bigint",
        "add inner.b string",
        "add list.element.c int",
        "widen map.value.a to double",
        "widen n.element to bigint",
    ]


def test_columns_are_renamed_and_dropped_only_by_a_rule() -> None:
    table, rules = struct(id=INT, price=FLOAT, note=STRING), Rules(renames={"price": "cost"}, drops=("note",))
    given = struct(id=INT, cost=FLOAT)
    assert found(given, table, rules) == ["rename price to cost", "drop note"]
    assert applied(table, changes(given, table, rules, add_column="")) == given
    assert found(given, struct(id=INT, cost=FLOAT), rules) == [], "they have been applied"
    assert found(struct(id=INT), table, Rules(add=True)) == []
    wider = Rules(widen=True, renames={"price": "cost"})
    assert found(struct(id=INT, cost=DOUBLE), table, wider) == [
        "rename price to cost",
        "widen cost to double",
    ]


@pytest.mark.parametrize(
    ("given", "rules", "sentence"),
    [
        (struct(id=INT, more=INT), Rules(), 'set evolve to "add", or add it to the table first, by hand'),
        (struct(id=INT, more=INT), Rules(widen=True), "'more' is not in the table: drop it, set evolve to"),
        (struct(id=LONG), Rules(add=True), 'cast it, or set evolve to "widen"'),
        (struct(id=STRING), ALL, "'id' is int in the table, and string in the DataFrame: cast it"),
        (struct(ID=INT), ALL, "'ID' is called 'id' in the table"),
        (struct(at=struct(x=INT, y=INT)), Rules(widen=True), "'at' is struct<x:int> in the table"),
        (struct(price=INT), Rules(renames={"price": "cost"}), "rename it in the DataFrame, too"),
        (struct(id=INT), Rules(renames={"price": "id"}), "the table has both"),
        (struct(id=INT), Rules(drops=("id",)), "'id' is to be dropped from the table, and the DataFrame has"),
        (struct(map=MapType(LONG, INT)), ALL, "'map.key' is int in the table"),
        (
            struct(key=INT, more=INT),
            Rules(add=True, required=("key",)),
            "'key' is not in the table, whose rows upserts find and compare by it",
        ),
        (
            struct(at=struct(x=INT, y=INT)),
            Rules(add=True, required=("at",)),
            "'at' is struct<x:int> in the table, and struct<x:int,y:int> in the DataFrame",
        ),
    ],
)
def test_what_the_rules_do_not_allow_is_refused(given: StructType, rules: Rules, sentence: str) -> None:
    table = struct(id=INT, price=FLOAT, at=struct(x=INT), map=MapType(INT, INT))
    with pytest.raises(UnfitTable) as refusal:
        found(given, table, rules)
    assert sentence in str(refusal.value)


def test_a_required_column_is_widened_and_renamed_but_its_fields_keep_their_order() -> None:
    rules = Rules(widen=True, renames={"key": "id"}, required=("id", "at"))
    table = struct(key=INT, at=struct(x=INT, y=INT))
    assert found(struct(id=LONG, at=struct(x=LONG, y=INT)), table, rules) == [
        "rename key to id",
        "widen id to bigint",
        "widen at.x to bigint",
    ]
    with pytest.raises(UnfitTable, match="'at' is struct<x:int,y:int> in the table"):
        found(struct(id=INT, at=struct(y=INT, x=INT)), table, rules)


def test_a_column_that_is_not_nullable_has_to_be_there() -> None:
    table = StructType(
        [
            StructField("id", INT, nullable=False),
            StructField("in", StructType([StructField("a", INT, False)])),
        ]
    )
    with pytest.raises(UnfitTable, match="'id' of the table is not nullable, and missing"):
        found(struct(more=INT), table)
    with pytest.raises(UnfitTable, match="'in' is struct<a:int>"):
        found(StructType([StructField("id", INT, False), StructField("in", struct(a=INT))]), table)


KINDS = st.recursive(
    st.sampled_from([INT, LONG, FLOAT, DOUBLE, STRING]),
    lambda inner: st.one_of(
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3).map(
            lambda each: struct(**each)
        ),
        inner.map(ArrayType),
        inner.map(lambda each: MapType(STRING, each)),
    ),
    max_leaves=6,
)
SCHEMAS = st.dictionaries(st.sampled_from("abcd"), KINDS, min_size=1).map(lambda each: struct(**each))


@with_any(one=SCHEMAS, other=SCHEMAS)
def test_after_its_changes_a_table_fits_both_schemas(one: StructType, other: StructType) -> None:
    try:
        needed = changes(one, other, ALL, add_column="")
    except UnfitTable:
        return
    table = applied(other, needed)
    assert changes(one, table, ALL, add_column="") == []
    assert changes(other, table, ALL, add_column="") == []


def test_the_rules_are_options() -> None:
    given = {"table": "a.b", "evolve": "add, Widen", "renameColumns": "a:b, c:d", "dropColumns": "e"}
    options = IcebergOptions.of(given)
    assert options.evolve == Rules(add=True, widen=True, renames={"a": "b", "c": "d"}, drops=("e",))
    assert not IcebergOptions.of({"table": "a.b"}).evolve


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"evolve": "grow"}, "option 'evolve': 'grow' is not one of add, widen"),
        ({"renameColumns": "a"}, "expected old:new,another:name"),
        ({"renameColumns": "a:c,b:c"}, "expected old:new,another:name"),
    ],
)
def test_rules_that_make_no_sense_are_refused(options: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidOption) as refusal:
        IcebergOptions.of({"table": "a.b"} | options)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize("name", ["renameColumns", "dropColumns"])
def test_a_delta_table_does_not_rename_or_drop_columns(name: str) -> None:
    with pytest.raises(InvalidOption, match="only with column mapping, which deltalake cannot write"):
        DeltaOptions.of({"path": "/tmp/x", name: "a:b"})
