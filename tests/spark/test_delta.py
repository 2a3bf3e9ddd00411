"""`format("headrace-delta")`: every row once, across restarts and crashes; few files; any type."""

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType, VariantType, VariantVal

from headrace.spark.tables.sources import DeltaSource
from spark.feeds import SCHEMA, Feed, drain, killed_after_commit
from spark.queries import Queries
from spark.table_rows import ROWS, TYPES, plain
from spark.topics import SIZES

DELTA: Final = "headrace-delta"


@pytest.fixture
def feed(spark: SparkSession, tmp_path: Path) -> Iterator[Feed]:
    yield Feed(tmp_path)
    for query in spark.streams.active:
        query.stop()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table"


def rows_of(path: Path, *order: str) -> list[dict[str, Any]]:
    table = DeltaTable(path).to_pyarrow_table()
    found: list[dict[str, Any]] = table.sort_by(
        [(name, "ascending") for name in order or ("id",)]
    ).to_pylist()
    return found


def ids_of(path: Path) -> list[int]:
    return [row["id"] for row in rows_of(path)]


def parquet_files(path: Path) -> set[Path]:
    return set(path.rglob("*.parquet")) - set(path.glob("_delta_log/*"))


def stream(spark: SparkSession, feed: Feed, path: Path, **options: Any) -> None:
    drain(feed.read(spark), feed, DELTA, {"path": str(path)} | options)


# -- streams -----------------------------------------------------------------------------------


def test_each_batch_of_a_stream_is_one_commit_and_a_restart_goes_on_after_the_last(
    spark: SparkSession, feed: Feed, path: Path
) -> None:
    feed.add(range(100))
    feed.add(range(100, 150))
    stream(spark, feed, path)
    feed.add(range(150, 175))
    stream(spark, feed, path)

    assert ids_of(path) == list(range(175))
    assert DeltaTable(path).version() == 3  # made, then three batches
    assert len(parquet_files(path)) == len(DeltaTable(path).file_uris())


@pytest.mark.long  # the rule has tests in tests/unit/spark/tables/delta/test_delta_commits.py
def test_a_driver_killed_between_the_tables_commit_and_sparks_own_writes_no_row_twice(
    spark: SparkSession, feed: Feed, path: Path
) -> None:
    feed.add(range(1000))
    feed.add(range(1000, 1010))

    killed_after_commit(feed.files.parent, DeltaSource, {"path": str(path)})
    assert ids_of(path) == list(range(1000))
    assert not list((feed.checkpoint / "commits").glob("[0-9]*")), "Spark has noted the batch before the kill"
    before = DeltaTable(path).file_uris()
    stream(spark, feed, path)

    assert ids_of(path) == list(range(1010))
    assert set(before) <= set(DeltaTable(path).file_uris())
    assert len(parquet_files(path)) == len(DeltaTable(path).file_uris()), "the repeated batch left its files"


def test_a_topic_becomes_a_table(queries: Queries, feed: Feed, path: Path) -> None:
    topic = queries.spark.readStream.format("headrace").options(
        **queries.options({"subscribe": "skewed", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 700})
    )
    drain(topic.load(), feed, DELTA, {"path": str(path), "partitionBy": "partition"})

    places = [(row["partition"], row["offset"]) for row in rows_of(path, "partition", "offset")]
    assert places == [(number, offset) for number, size in enumerate(SIZES) for offset in range(size)]
    directories = {f"partition={number}" for number, size in enumerate(SIZES) if size}
    assert {each.name for each in path.iterdir()} == {"_delta_log"} | directories


def test_in_complete_mode_each_batch_replaces_the_one_before(
    spark: SparkSession, feed: Feed, path: Path
) -> None:
    feed.add(range(10))
    feed.add(range(5))
    counts = feed.read(spark).groupBy("id").count()

    drain(counts, feed, DELTA, {"path": str(path)}, mode="complete")

    assert [(row["id"], row["count"]) for row in rows_of(path)] == [(n, 2 if n < 5 else 1) for n in range(10)]


def test_two_queries_that_write_to_one_table_do_not_take_each_others_batches_for_theirs(
    spark: SparkSession, tmp_path: Path, path: Path
) -> None:
    for name, ids in (("one", range(10)), ("two", range(10, 20))):
        feed = Feed(tmp_path / name)
        feed.add(ids)
        stream(spark, feed, path)

    assert ids_of(path) == list(range(20))


# -- failures ----------------------------------------------------------------------------------


def test_a_task_that_fails_leaves_no_row(spark: SparkSession, feed: Feed, path: Path) -> None:
    feed.add(range(50))
    stream(spark, feed, path)
    feed.add(range(50, 20_000))

    poison = sql.raise_error(sql.lit("this row is poison")).cast("long")
    poisoned = sql.when(sql.col("id") == 19_999, poison).otherwise(sql.col("id"))
    with pytest.raises(PySparkException, match="this row is poison"):
        drain(
            feed.read(spark).withColumn("id", poisoned), feed, DELTA, {"path": path, "targetFileBytes": 1000}
        )

    assert ids_of(path) == list(range(50))
    stream(spark, feed, path)
    assert ids_of(path) == list(range(20_000))


def test_a_compaction_that_fails_fails_nothing_else(spark: SparkSession, feed: Feed, path: Path) -> None:
    feed.add(range(10))
    stream(spark, feed, path, compactEvery=0)
    # What compaction would merge has gone; a commit does not look at older files.
    Path(DeltaTable(path).file_uris()[0]).unlink()
    feed.add(range(10, 20))
    stream(spark, feed, path, compactEvery=1)

    assert DeltaTable(path).transaction_version(_query_id(feed)) == 1


def _query_id(feed: Feed) -> str:
    found: str = json.loads((feed.checkpoint / "metadata").read_text())["id"]
    return found


# -- small files -------------------------------------------------------------------------------


def test_compaction_keeps_the_rows_and_reduces_the_files(spark: SparkSession, feed: Feed, path: Path) -> None:
    for n in range(6):
        feed.add(range(n * 10, n * 10 + 10))
    stream(spark, feed, path, compactEvery=3)

    assert ids_of(path) == list(range(60))
    assert [each["operation"] for each in DeltaTable(path).history()].count("OPTIMIZE") == 2
    assert len(DeltaTable(path).file_uris()) == 1


def test_a_file_is_cut_at_the_size_that_was_asked_for(spark: SparkSession, path: Path) -> None:
    table = spark.range(0, 100_000, numPartitions=1).withColumn(
        "noise", sql.md5(sql.col("id").cast("string"))
    )
    table.write.format(DELTA).mode("append").options(targetFileBytes=500_000).save(str(path))

    sizes = sorted(DeltaTable(path).get_add_actions(flatten=True)["size_bytes"].to_pylist())
    assert len(sizes) > 3
    assert max(sizes) < 1_000_000
    assert ids_of(path) == list(range(100_000))


# -- batch -------------------------------------------------------------------------------------


def test_a_dataframe_is_appended_or_replaces_the_table(spark: SparkSession, path: Path) -> None:
    for mode, ids in (("append", range(10)), ("append", range(10, 20)), ("overwrite", range(5))):
        frame = spark.createDataFrame([(n, f"row {n}") for n in ids], SCHEMA)
        frame.write.format(DELTA).mode(mode).save(str(path))
        assert ids_of(path) == list(range(20 if 10 in ids else len(ids)))

    assert rows_of(path)[3] == {"id": 3, "name": "row 3"}


def test_a_dataframe_with_a_version_that_the_table_has_is_skipped(spark: SparkSession, path: Path) -> None:
    for version, ids in ((0, range(5)), (0, range(5)), (1, range(5, 8)), (0, range(9))):
        frame = spark.createDataFrame([(n, f"row {n}") for n in ids], SCHEMA)
        identity = {"txnAppId": "job-sink", "txnVersion": str(version)}
        frame.write.format(DELTA).mode("append").options(**identity).save(str(path))

    assert ids_of(path) == list(range(8))


def test_an_empty_dataframe_makes_an_empty_table(spark: SparkSession, path: Path) -> None:
    spark.createDataFrame([], SCHEMA).write.format(DELTA).mode("append").save(str(path))

    assert DeltaTable(path).schema().to_arrow().names == ["id", "name"]
    assert rows_of(path) == []


def test_a_table_is_divided_by_columns_of_any_value(spark: SparkSession, path: Path) -> None:
    names = ["plain", "a/b c", "50%", "x=y", "ö", None]
    rows = [
        Row(id=n, name=names[n % 6], day=dt.date(2026, 1, 1 + n % 2), small=n % 3, even=n % 2 == 0)
        for n in range(36)
    ]
    frame = spark.createDataFrame(rows, "id long, name string, day date, small int, even boolean")
    frame.write.format(DELTA).mode("append").options(partitionBy="name, day, small, even").save(str(path))

    assert [Row(**row) for row in rows_of(path)] == rows
    assert DeltaTable(path).metadata().partition_columns == ["name", "day", "small", "even"]
    assert len(DeltaTable(path).to_pyarrow_table(filters=[("name", "=", "a/b c")])) == 6


def test_a_task_with_more_values_than_open_files_writes_every_row(spark: SparkSession, path: Path) -> None:
    frame = spark.range(0, 3000, numPartitions=1).withColumn("part", sql.col("id") % 150)
    frame.write.format(DELTA).mode("append").options(partitionBy="part").save(str(path))

    assert ids_of(path) == list(range(3000))


# -- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_every_type_comes_back_as_it_was_also_when_compacted(
    spark: SparkSession, path: Path, zone: str
) -> None:
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        for row in ROWS:
            frame = spark.createDataFrame([row], TYPES)
            frame.write.format(DELTA).mode("append").options(compactEvery=3).save(str(path))
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")

    assert [plain(row) for row in rows_of(path)] == [plain(row) for row in ROWS]
    assert len(DeltaTable(path).file_uris()) == 1, "it was not compacted"


def test_readers_can_leave_out_files_by_what_the_log_says_of_them(spark: SparkSession, path: Path) -> None:
    for first in (0, 100):
        frame = spark.range(first, first + 100, numPartitions=1).select(
            "id",
            sql.timestamp_millis(sql.col("id") * 1000).alias("at"),
            sql.lit(None).cast("int").alias("gap"),
        )
        frame.write.format(DELTA).mode("append").save(str(path))

    found = DeltaTable(path).get_add_actions(flatten=True)
    said = sorted(
        zip(
            *(found[name].to_pylist() for name in ("min.id", "max.id", "num_records", "null_count.gap")),
            strict=True,
        )
    )
    assert said == [(0, 99, 100, 100), (100, 199, 100, 100)]


# -- what does not fit -------------------------------------------------------------------------


def _refused(frame: DataFrame, path: Path, **options: Any) -> str:
    with pytest.raises(PySparkException) as refusal:
        frame.write.format(DELTA).mode("append").options(**options).save(str(path))
    return str(refusal.value)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ("id int", "column 'id' is bigint in the table, and int in the DataFrame: cast it"),
        ("id long, more int", "column 'more' is not in the table: drop it, set evolve to \"add\", or add it"),
        ("id long, NAME string", "column 'NAME' is called 'name' in the table: rename it"),
        (
            "id long, name array<string>",
            "column 'name' is string in the table, and array<string> in the DataFrame",
        ),
        ("id long, gap interval day", "column 'gap' is interval day, which tables do not have"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_before_anything_is_written(
    spark: SparkSession, path: Path, columns: str, sentence: str
) -> None:
    spark.createDataFrame([(1, "one")], SCHEMA).write.format(DELTA).mode("append").save(str(path))
    before = sorted(path.rglob("*"))

    assert sentence in _refused(spark.createDataFrame([], columns), path)
    assert sorted(path.rglob("*")) == before


def test_a_column_of_the_table_that_is_missing_here_is_null(spark: SparkSession, path: Path) -> None:
    spark.createDataFrame([(1, "one")], SCHEMA).write.format(DELTA).mode("append").save(str(path))
    spark.createDataFrame([(2,)], "id long").write.format(DELTA).mode("append").save(str(path))

    assert rows_of(path)[1] == {"id": 2, "name": None}


def test_a_null_where_the_table_allows_none_is_refused(spark: SparkSession, path: Path) -> None:
    DeltaTable.create(path, Schema([Field("id", PrimitiveType("long"), nullable=False)]))
    spark.createDataFrame([(1,)], "id long").write.format(DELTA).mode("append").save(str(path))

    assert "column 'id' has a null" in _refused(spark.createDataFrame([(None,)], "id long"), path)
    assert ids_of(path) == [1]
    assert len(parquet_files(path)) == 1


def test_a_table_whose_rows_would_have_to_be_checked_is_left_alone(spark: SparkSession, path: Path) -> None:
    spark.createDataFrame([(1,)], "id long").write.format(DELTA).mode("append").save(str(path))
    DeltaTable(path).alter.add_constraint({"positive": "id > 0"})

    refusal = _refused(spark.createDataFrame([(-1,)], "id long"), path)
    assert "rules that this sink cannot enforce (delta.constraints.positive)" in refusal


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"compactEvry": "1"}, "option 'compactevry': unknown; did you mean compactEvery?"),
        ({"partitionBy": "nope"}, "option 'partitionBy': there is no column 'nope'"),
        ({"partitionBy": "id,name"}, "option 'partitionBy': at least one column has to"),
    ],
)
def test_an_option_that_makes_no_sense_is_named(
    spark: SparkSession, path: Path, options: dict[str, str], sentence: str
) -> None:
    assert sentence in _refused(spark.createDataFrame([(1, "x")], SCHEMA), path, **options)
    assert not path.exists()


def test_a_variant_is_stored_as_a_variant(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "variants")
    texts = ['{"a":[1,"x"]}', "null", None]
    rows = spark.createDataFrame(list(enumerate(texts)), "id long, text string")
    rows.selectExpr("id", "try_parse_json(text) AS v").write.format("headrace-delta").mode("append").save(
        path
    )

    found = DeltaTable(path).to_pyarrow_table().sort_by("id")["v"].to_pylist()
    assert [v and VariantVal(v["value"], v["metadata"]).toJson() for v in found] == texts
    assert StructType.fromJson(json.loads(DeltaTable(path).schema().to_json()))["v"].dataType == VariantType()
