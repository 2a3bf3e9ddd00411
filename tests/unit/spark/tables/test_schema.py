import pytest
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headrace.spark.errors import InvalidOption
from headrace.spark.tables.evolution import Rules, changes
from headrace.spark.tables.schema import UnfitTable, check_partitioning, storable


def columns(**types: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in types.items()])


def check_fit(given: StructType, table: StructType) -> None:
    assert changes(given, table, Rules(), add_column="") == []


def test_a_new_table_allows_nulls_everywhere_and_knows_nothing_of_watermarks() -> None:
    inner = StructType([StructField("x", ArrayType(IntegerType(), containsNull=False), nullable=False)])
    given = StructType(
        [
            StructField("at", TimestampType(), nullable=False, metadata={"spark.watermarkDelayMs": 5}),
            StructField("inner", inner, nullable=False),
        ]
    )

    assert storable(given) == columns(at=TimestampType(), inner=columns(x=ArrayType(IntegerType())))


@pytest.mark.parametrize("kind", [NullType(), StringType("UTF8_LCASE")])
def test_a_type_that_tables_do_not_have_is_named_with_its_place(kind: DataType) -> None:
    with pytest.raises(UnfitTable, match=r"column 'a\.b' is "):
        storable(columns(a=columns(b=ArrayType(kind))))


def test_two_columns_that_differ_in_capitals_only_are_refused() -> None:
    with pytest.raises(UnfitTable, match="columns 'id' and 'ID' are the same column in a table"):
        storable(columns(id=LongType(), ID=LongType()))


def test_columns_are_found_by_name_and_may_be_missing() -> None:
    check_fit(columns(b=LongType(), a=StringType()), columns(a=StringType(), b=LongType(), c=LongType()))


def test_a_column_that_must_not_be_null_must_not_be_missing() -> None:
    table = StructType([StructField("a", LongType(), nullable=False), StructField("b", LongType())])

    with pytest.raises(
        UnfitTable, match="column 'a' of the table is not nullable, and missing in the DataFrame"
    ):
        check_fit(columns(b=LongType()), table)


@pytest.mark.parametrize(
    ("given", "table"),
    [
        (ArrayType(LongType()), ArrayType(LongType(), containsNull=False)),
        (MapType(StringType(), LongType()), MapType(StringType(), LongType(), valueContainsNull=False)),
        (columns(x=LongType()), StructType([StructField("x", LongType(), nullable=False)])),
        (columns(x=LongType(), y=LongType()), columns(x=LongType())),
        (ArrayType(IntegerType()), ArrayType(LongType())),
    ],
)
def test_what_is_inside_a_column_has_to_fit_too(given: DataType, table: DataType) -> None:
    with pytest.raises(UnfitTable, match=r"column 'a(\.element)?' is "):
        check_fit(columns(a=given), columns(a=table))


def test_fewer_nulls_than_the_table_allows_are_welcome() -> None:
    given = ArrayType(LongType(), containsNull=False)

    check_fit(columns(a=given), columns(a=ArrayType(LongType())))


def test_a_table_is_divided_by_some_of_its_plain_columns() -> None:
    table = columns(a=LongType(), b=StringType(), at=TimestampType())

    check_partitioning(["a", "b"], table)
    with pytest.raises(InvalidOption, match="column 'at' is timestamp: partition by"):
        check_partitioning(["at"], table)
    with pytest.raises(InvalidOption, match="at least one column has to remain"):
        check_partitioning(["b", "a"], columns(a=LongType(), b=StringType()))
