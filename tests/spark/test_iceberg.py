"""`format("headrace-iceberg")`: every row once, across restarts and crashes; any type."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.table import Table
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from headrace.spark.tables.iceberg.table import BATCH_ID, QUERY_ID
from headrace.spark.tables.sources import IcebergSource
from spark.feeds import SCHEMA, Feed, drain, killed_after_commit
from spark.table_rows import ROWS, TYPES, plain

pytestmark = pytest.mark.long  # its rules have quick tests in tests/unit/spark/tables
ICEBERG: Final = "headrace-iceberg"
NAME: Final = "fleet.rows"


class Lake:
    """A catalog in a SQLite file, and one table of it."""

    def __init__(self, root: Path) -> None:
        self.warehouse = root / "warehouse"
        self._settings = {
            "type": "sql",
            "uri": f"sqlite:///{root}/catalog.db",
            "warehouse": f"file://{self.warehouse}",
        }
        self.options = {"table": NAME} | {f"catalog.{name}": value for name, value in self._settings.items()}

    @property
    def catalog(self) -> Catalog:
        return load_catalog("default", **self._settings)

    @property
    def table(self) -> Table:
        return self.catalog.load_table(NAME)

    def rows(self, order: str = "id") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.scan().to_arrow().sort_by(order).to_pylist()
        return found

    def ids(self) -> list[int]:
        return [row["id"] for row in self.rows()]

    def files(self) -> set[str]:
        return {task.file.file_path for task in self.table.scan().plan_files()}

    def on_disk(self) -> set[str]:
        return {f"file://{path}" for path in self.warehouse.rglob("*.parquet")}


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(tmp_path)
    yield lake
    lake.catalog.close()


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Iterator[Feed]:
    yield Feed(tmp_path)
    for query in spark.streams.active:
        query.stop()


def stream(spark: SparkSession, feed: Feed, lake: Lake, **options: Any) -> None:
    drain(feed.read(spark), feed, ICEBERG, lake.options | options)


def append(frame: DataFrame, lake: Lake, mode: str = "append", **options: Any) -> None:
    frame.write.format(ICEBERG).mode(mode).options(**lake.options | options).save()


def test_each_batch_of_a_stream_is_one_snapshot_and_a_restart_goes_on_after_the_last(
    spark: SparkSession, feed: Feed, lake: Lake
) -> None:
    feed.add(range(100))
    feed.add(range(100, 150))
    stream(spark, feed, lake)
    feed.add(range(150, 175))
    stream(spark, feed, lake)

    said = [each.summary.additional_properties for each in lake.table.snapshots() if each.summary]
    assert lake.ids() == list(range(175))
    assert [each[BATCH_ID] for each in said] == ["0", "1", "2"]
    assert len({each[QUERY_ID] for each in said}) == 1
    assert lake.on_disk() == lake.files()


def test_a_driver_killed_between_the_tables_commit_and_sparks_own_writes_no_row_twice(
    spark: SparkSession, feed: Feed, lake: Lake
) -> None:
    feed.add(range(1000))
    feed.add(range(1000, 1010))

    killed_after_commit(feed.files.parent, IcebergSource, lake.options)
    assert lake.ids() == list(range(1000))
    assert not list((feed.checkpoint / "commits").glob("[0-9]*")), "Spark has noted the batch before the kill"
    stream(spark, feed, lake)

    assert lake.ids() == list(range(1010))
    assert len(lake.table.snapshots()) == 2
    assert lake.on_disk() == lake.files(), "the repeated batch left its files"


def test_in_complete_mode_each_batch_replaces_the_one_before(
    spark: SparkSession, feed: Feed, lake: Lake
) -> None:
    feed.add(range(10))
    feed.add(range(5))
    counts = feed.read(spark).groupBy("id").count()

    drain(counts, feed, ICEBERG, lake.options, mode="complete")

    assert [(row["id"], row["count"]) for row in lake.rows()] == [(n, 2 if n < 5 else 1) for n in range(10)]


def test_a_task_that_fails_leaves_no_row(spark: SparkSession, feed: Feed, lake: Lake) -> None:
    feed.add(range(50))
    stream(spark, feed, lake)
    feed.add(range(50, 20_000))

    poison = sql.raise_error(sql.lit("this row is poison")).cast("long")
    poisoned = sql.when(sql.col("id") == 19_999, poison).otherwise(sql.col("id"))
    with pytest.raises(PySparkException, match="this row is poison"):
        drain(
            feed.read(spark).withColumn("id", poisoned),
            feed,
            ICEBERG,
            lake.options | {"targetFileBytes": 1000},
        )

    assert lake.ids() == list(range(50))
    stream(spark, feed, lake)
    assert lake.ids() == list(range(20_000))


def test_compaction_keeps_the_rows_and_reduces_the_files(spark: SparkSession, feed: Feed, lake: Lake) -> None:
    for n in range(4):
        feed.add(range(n * 10, n * 10 + 10))
    stream(spark, feed, lake, compactEvery=2)
    feed.add(range(40, 50))
    stream(spark, feed, lake, compactEvery=2)

    assert lake.ids() == list(range(50))
    assert len(lake.files()) == 1 + 2  # what was merged, and the files of the last batch


def test_a_dataframe_is_appended_or_replaces_the_table(spark: SparkSession, lake: Lake) -> None:
    for mode, ids in (("append", range(10)), ("append", range(10, 20)), ("overwrite", range(5))):
        append(spark.createDataFrame([(n, f"row {n}") for n in ids], SCHEMA), lake, mode)
        assert lake.ids() == list(range(20 if 10 in ids else len(ids)))

    assert lake.rows()[3] == {"id": 3, "name": "row 3"}


def test_a_dataframe_with_a_version_that_the_table_has_is_skipped(spark: SparkSession, lake: Lake) -> None:
    for version, ids in ((0, range(5)), (0, range(5)), (1, range(5, 8)), (0, range(9))):
        frame = spark.createDataFrame([(n, f"row {n}") for n in ids], SCHEMA)
        append(frame, lake, txnAppId="job-sink", txnVersion=version)

    assert lake.ids() == list(range(8))


def test_an_empty_dataframe_makes_an_empty_table(spark: SparkSession, lake: Lake) -> None:
    append(spark.createDataFrame([], SCHEMA), lake)

    assert lake.table.schema().column_names == ["id", "name"]
    assert lake.rows() == []


def test_a_stream_into_a_table_with_hidden_partitioning(spark: SparkSession, feed: Feed, lake: Lake) -> None:
    for n in range(3):
        feed.add(range(n * 50, n * 50 + 50))
    stream(spark, feed, lake, partitionBy="bucket(4, id), truncate(5, name)", compactEvery=2)

    partitions = {repr(task.file.partition) for task in lake.table.scan().plan_files()}
    assert len(partitions) == 4 * 9, "`row 1` to `row 9`"
    assert lake.ids() == list(range(150))
    assert len(lake.table.scan("id = 77").to_arrow()) == 1
    refused = _refused(spark.createDataFrame([(1, "x")], SCHEMA), lake, partitionBy="name")
    assert "the table is partitioned by bucket(4,id), truncate(5,name): leave the option out" in refused


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_comes_back_as_it_was(spark: SparkSession, lake: Lake, zone: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for row in ROWS:
            append(spark.createDataFrame([row], TYPES), lake)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    # pyiceberg, when it reads, makes an empty list of one of structs that is null; the files are right.
    files = [pq.read_table(path.removeprefix("file://")).to_pylist() for path in lake.files()]
    by_id = sorted((row for rows in files for row in rows), key=lambda row: int(row["id"]))
    assert [plain(row) for row in by_id] == [plain(row) for row in ROWS]
    assert [plain(row | {"deep": None}) for row in lake.rows()] == [
        plain(row | {"deep": None}) for row in ROWS
    ]


def _refused(frame: DataFrame, lake: Lake, **options: Any) -> str:
    with pytest.raises(PySparkException) as refusal:
        append(frame, lake, **options)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("id string", "column 'id' is bigint in the table, and string in the DataFrame: cast it"),
        ("id long, more int", "column 'more' is not in the table: drop it, set evolve to \"add\", or add it"),
        ("id long, NAME string", "column 'NAME' is called 'name' in the table: rename it"),
        ("id long, gap interval day", "column 'gap' is interval day, which tables do not have"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_anything_is_written(
    spark: SparkSession, lake: Lake, columns: str, sentence: str
) -> None:
    append(spark.createDataFrame([(1, "one")], SCHEMA), lake)
    before = sorted(lake.warehouse.rglob("*"))

    assert sentence in _refused(spark.createDataFrame([], columns), lake)
    assert sorted(lake.warehouse.rglob("*")) == before


def test_a_column_of_the_table_that_is_missing_here_is_null(spark: SparkSession, lake: Lake) -> None:
    append(spark.createDataFrame([(1, "one")], SCHEMA), lake)
    append(spark.createDataFrame([(2,)], "id long"), lake)

    assert lake.rows()[1] == {"id": 2, "name": None}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"table": "rows"}, "option 'table': 'rows' is not the name of a table; expected namespace.name"),
        ({"tabel": "a.b"}, "option 'tabel': unknown; did you mean table?"),
        ({"catalog.uri": "sqlite:////nowhere/at/all.db"}, "the table fleet.rows cannot be opened: "),
    ],
)
def test_an_option_that_makes_no_sense_is_named(
    spark: SparkSession, lake: Lake, options: dict[str, str], sentence: str
) -> None:
    assert sentence in _refused(spark.createDataFrame([(1, "x")], SCHEMA), lake, **options)
