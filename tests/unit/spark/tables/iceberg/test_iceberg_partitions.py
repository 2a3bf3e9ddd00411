"""Hidden partitioning: our transforms against pyiceberg's, and partitioned tables as others read them."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.catalog import load_catalog
from pyiceberg.transforms import BucketTransform, parse_transform
from pyspark.sql.types import StructType

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.tables.iceberg import compaction as iceberg_compaction
from headrace.spark.tables.iceberg import table as iceberg_table
from headrace.spark.tables.iceberg.partitions import PartitionField
from headrace.spark.tables.iceberg.sink import IcebergSink
from headrace.spark.tables.iceberg.spec import written
from headrace.spark.tables.options import IcebergOptions
from headrace.spark.tables.partition_texts import split
from headrace.spark.tables.schema import UnfitTable

SCHEMA = StructType().add("id", "long").add("name", "string").add("country", "string").add("at", "timestamp")
NOON = dt.datetime(2026, 1, 31, 12, 30, tzinfo=dt.UTC)
COLUMNS: dict[str, tuple[iceberg.IcebergType, pa.DataType, list[Any]]] = {
    "int": (iceberg.IntegerType(), pa.int32(), [34, 0, -1, -(2**31), 2**31 - 1, None]),
    "long": (iceberg.LongType(), pa.int64(), [34, 0, -7, 2**62, -(2**63), None]),
    "string": (iceberg.StringType(), pa.large_string(), ["iceberg", "", "äöüß€", "a😀bcd", None]),
    "binary": (iceberg.BinaryType(), pa.binary(), [b"\x00\x01\x02\x03\x04", b"", None]),
    "decimal": (
        iceberg.DecimalType(38, 2),
        pa.decimal128(38, 2),
        [
            Decimal("14.20"),
            Decimal("-14.21"),
            Decimal("0.00"),
            Decimal("1.28"),
            Decimal(f"-{'9' * 35}.99"),
            None,
        ],
    ),
    "date": (
        iceberg.DateType(),
        pa.date32(),
        [dt.date(2017, 11, 16), dt.date(1969, 12, 31), dt.date(1, 1, 1), dt.date(1970, 1, 1), None],
    ),
    "timestamp": (
        iceberg.TimestamptzType(),
        pa.timestamp("us", "UTC"),
        [
            NOON,
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999, dt.UTC),
            dt.datetime(1900, 3, 1, tzinfo=dt.UTC),
            None,
        ],
    ),
}
CASES = [
    *((f"bucket[{n}]", kind) for n in (1, 16, 1000) for kind in COLUMNS),
    *(
        (f"truncate[{n}]", kind)
        for n in (1, 3, 10)
        for kind in ("int", "long", "string", "binary", "decimal")
    ),
    *((name, kind) for name in ("year", "month", "day") for kind in ("date", "timestamp")),
    ("hour", "timestamp"),
]


@pytest.mark.parametrize(("transform", "column"), CASES)
def test_a_transform_of_a_column_is_that_of_each_value(transform: str, column: str) -> None:
    kind, arrow, values = COLUMNS[column]
    batch = pa.record_batch({"x": pa.array(values, arrow)})
    name, _, argument = transform.removesuffix("]").partition("[")

    found = PartitionField("p", ("x",), name, int(argument or 0)).values(batch).to_pylist()

    theirs = parse_transform(transform)
    one_by_one = theirs.transform(kind)
    if isinstance(theirs, BucketTransform) or column in ("int", "long", "string", "binary", "decimal"):
        expected = [one_by_one(each) for each in values]
    else:  # the scalar transforms of times want the internal values
        stored = batch.column("x").view(pa.int32() if column == "date" else pa.int64()).to_pylist()
        expected = [one_by_one(each) for each in stored]
    if name == "truncate" and column in ("int", "long"):
        expected = [_wrapped(each, 32 if column == "int" else 64) for each in expected]
    assert found == expected


def _wrapped(number: int | None, bits: int) -> int | None:
    """-2147483648 truncated to tens wraps around, as in Java; Python's numbers do not."""
    half = 2 ** (bits - 1)
    return None if number is None else (number + half) % (2 * half) - half


def test_the_values_of_a_field_of_a_struct_are_used_and_a_missing_column_is_null() -> None:
    batch = pa.record_batch({"a": pa.array([{"b": 1}, None, {"b": None}], pa.struct([("b", pa.int64())]))})

    assert PartitionField("p", ("a", "b"), "identity").values(batch).to_pylist() == [1, None, None]
    assert PartitionField("p", ("c",), "identity").values(batch).to_pylist() == [None] * 3
    assert PartitionField("p", ("a", "b"), "void").values(batch).to_pylist() == [None] * 3


@pytest.mark.parametrize(
    ("transform", "value", "text"),
    [
        ("day", 20484, "2026-01-31"),
        ("hour", 20484 * 24 + 7, "2026-01-31-07"),
        ("month", -1, "1969-12"),
        ("year", 56, "2026"),
        ("identity", b"\x01\xff", "01ff"),
        ("identity", None, None),
    ],
)
def test_a_directory_has_a_readable_name(transform: str, value: Any, text: str | None) -> None:
    assert PartitionField("p", ("x",), transform).text(value) == text


def test_a_partitioning_is_parsed_in_sparks_words_and_in_icebergs() -> None:
    assert split("days( at ), bucket(16, id), truncate(name, 4),country") == (
        "day(at)",
        "bucket(16,id)",
        "truncate(4,name)",
        "country",
    )
    assert split(" ") == ()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("day(", "'day.' is no partitioning"),
        ("week(at)", "'week' is not one of year, month"),
        ("bucket(id)", "expected bucket.16, column"),
        ("bucket(0, id)", "expected bucket.16, column"),
        ("a,,b", "'' is no partitioning"),
        ("a,a", "'a' is there twice"),
        ("day()", "expected day.column"),
    ],
)
def test_an_invalid_partitioning_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        split(text)


@pytest.fixture
def options(tmp_path: Path) -> IcebergOptions:
    settings = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}"}
    return IcebergOptions(
        table="fleet.rows",
        given_catalog=settings,
        compact_every=0,
        partition_by=("day(at)", "bucket(4,id)", "truncate(2,name)", "country"),
    )


def rows(ids: range) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"{'ab' if n % 2 else 'cd'}{n}" for n in ids],
            "country": [None if n % 5 == 0 else "CH" for n in ids],
            "at": pa.array([NOON + dt.timedelta(hours=n) for n in ids], pa.timestamp("us", "UTC")),
        }
    )


def append(options: IcebergOptions, ids: range, batch: Batch) -> None:
    sink = IcebergSink(options, SCHEMA, overwrite=False)
    sink.commit(sink.write(iter([rows(ids)])), batch)


def ids_of(options: IcebergOptions, where: str = "true") -> list[int]:
    table = iceberg_table.open_table(options, SCHEMA)
    found: list[int] = sorted(table.scan(where).to_arrow()["id"].to_pylist())
    return found


def test_a_partitioned_table_has_every_row_and_a_filter_reads_only_the_files_of_its_partitions(
    options: IcebergOptions,
) -> None:
    append(options, range(60), Batch("query", 0))

    table = iceberg_table.open_table(options, SCHEMA)
    assert written(table) == options.partition_by
    assert ids_of(options) == list(range(60))
    assert ids_of(options, "at < '2026-02-01T00:00:00+00:00'") == list(range(12))
    assert ids_of(options, "id = 7 and name = 'ab7'") == [7]
    assert ids_of(options, "country is null") == list(range(0, 60, 5))
    every = list(table.scan().plan_files())
    assert len(list(table.scan("at < '2026-02-01T00:00:00+00:00'").plan_files())) < len(every)
    assert len(list(table.scan("id = 7").plan_files())) < len(every)
    data = Path(table.location().removeprefix("file://")) / "data"
    assert list(data.glob("at_day=2026-01-31/id_bucket=*/name_trunc=ab/country=CH/*.parquet"))


def test_compaction_merges_within_partitions(options: IcebergOptions) -> None:
    append(options, range(30), Batch("query", 0))
    append(options, range(30, 31), Batch("query", 1))
    append(options, range(30), Batch("query", 2))

    table = iceberg_table.open_table(options, SCHEMA)
    partitions = {repr(task.file.partition) for task in table.scan().plan_files()}
    assert iceberg_compaction.merge(table, 1 << 20)[0] > 0

    assert len(list(table.refresh().scan().plan_files())) == len(partitions)
    assert ids_of(options) == sorted([*range(30), *range(31)])
    assert ids_of(options, "id = 7 and name = 'ab7'") == [7, 7]
    assert iceberg_compaction.merge(table, 1 << 20)[0] == 0, "single files are left alone"


def test_a_table_that_another_program_has_partitioned_is_written_as_it_is(options: IcebergOptions) -> None:
    plain = IcebergOptions(table=options.table, given_catalog=options.catalog, compact_every=0)
    append(plain, range(10), Batch("query", 0))
    table = iceberg_table.open_table(plain, SCHEMA)
    with table.update_spec() as spec:
        spec.add_field("country", "identity").add_field("at", "month")

    append(plain, range(10, 20), Batch("query", 1))
    assert ids_of(plain) == list(range(20))
    assert ids_of(plain, "country = 'CH'") == [n for n in range(20) if n % 5]
    assert written(iceberg_table.open_table(plain, SCHEMA)) == ("country", "month(at)")
    with pytest.raises(InvalidOption, match=r"partitioned by country, month\(at\): leave the option out"):
        iceberg_table.open_table(options, SCHEMA)


def test_files_of_an_older_partitioning_are_not_committed(options: IcebergOptions) -> None:
    sink = IcebergSink(options, SCHEMA, overwrite=False)
    files = sink.write(iter([rows(range(3))]))
    table = iceberg_table.open_table(options, SCHEMA)
    with table.update_spec() as spec:
        spec.remove_field("country")

    loose = IcebergOptions(table=options.table, given_catalog=options.catalog, compact_every=0)
    with pytest.raises(UnfitTable, match="restart the query"):
        IcebergSink(loose, SCHEMA, overwrite=False).commit(files, Batch("query", 0))
    append(loose, range(3), Batch("query", 0))
    assert ids_of(loose) == [0, 1, 2]


@pytest.mark.parametrize(
    ("partition_by", "sentence"),
    [
        ("day(id)", "column 'id' is long, which cannot be partitioned by"),
        ("price", "column 'price' is double"),
        ("day(when)", "there is no column 'when'; expected one of id, price, id_bucket"),
        ("bucket(4,id)", "the partition is called id_bucket, and so is a column"),
    ],
)
def test_a_table_that_cannot_be_partitioned_like_that_is_not_created(
    options: IcebergOptions, partition_by: str, sentence: str
) -> None:
    schema = StructType().add("id", "long").add("price", "double").add("id_bucket", "integer")
    given = IcebergOptions(table=options.table, given_catalog=options.catalog, partition_by=(partition_by,))
    with pytest.raises(InvalidOption, match=sentence):
        iceberg_table.open_table(given, schema)
    assert not load_catalog("default", **options.catalog).table_exists(options.table)
