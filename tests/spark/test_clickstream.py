"""A clickstream through a pipeline, against results that DuckDB computes from the clicks themselves.

The tables are read back with DuckDB's and Polars' own Parquet readers.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.catalog import load_catalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline import Delta, Iceberg, Json, Pipeline, Topic
from headrace.pipeline.runner import Runner
from headrace.pipeline.state import PipelineState
from headrace.pipeline.topics import create, missing_topics
from spark.clickstream import MOST_LATE, TYPES, Clicks, clicks, last_click
from wire.confluent import make_topic, read, send
from wire.process import BrokerProcess

# Each sink, windows and upserts have shorter tests: test_pipelines.py, test_delta.py, test_upserts.py, ...
pytestmark = pytest.mark.long
PARTITIONS: Final = 3
NAME: Final = "clickstream"
WINDOWS_SQL: Final = """
    select time_bucket(interval '10 minutes', "at") as begins, page, count(*) as clicks,
           count(distinct visitor) as visitors
    from clicks group by all order by all
"""


class Played(NamedTuple):
    """A pipeline that has read all clicks, in two runs."""

    clicks: Clicks
    bootstrap: str
    root: Path
    catalog: Mapping[str, str]

    @property
    def delta(self) -> DeltaTable:
        return DeltaTable(str(self.root / "clicks"))

    @property
    def windows(self) -> DeltaTable:
        return DeltaTable(str(self.root / "windows"))

    def records(self, topic: str, partitions: int = 1) -> list[Any]:
        return read(self.bootstrap, topic, partitions=range(partitions))


def declared(root: Path, catalog: Mapping[str, str]) -> Pipeline:
    pipeline = Pipeline(NAME)
    pipeline.source("clicks", topic=NAME, decode=Json(TYPES))

    @pipeline.view
    def distinct(clicks: DataFrame) -> DataFrame:
        lateness = f"{2 * MOST_LATE.seconds} seconds"
        return clicks.withWatermark("at", lateness).dropDuplicatesWithinWatermark(["id"])

    @pipeline.sink(Delta(str(root / "clicks"), partition_by=["day"]))
    def archive(clicks: DataFrame) -> DataFrame:
        return clicks.drop("_record").withColumn("day", F.to_date("at"))

    @pipeline.sink(Iceberg("web.payments", catalog))
    def payments(clicks: DataFrame) -> DataFrame:
        return clicks.where("price is not null").select("id", "visitor", "price", "at")

    @pipeline.sink(Delta(str(root / "windows")))
    def windows(distinct: DataFrame) -> DataFrame:
        counted = distinct.groupBy(F.window("at", "10 minutes"), "page").agg(
            F.count("*").alias("clicks"), F.approx_count_distinct("visitor", 0.01).alias("visitors")
        )
        return counted.select(F.col("window.start").alias("begins"), "page", "clicks", "visitors")

    @pipeline.sink(Delta(str(root / "visitors")).upsert(keys="visitor", sequence_by=["at", "id"]))
    def visitors(clicks: DataFrame) -> DataFrame:
        return clicks.where("id <> 'last'").select("visitor", "page", "country", "at", "id", "_record")

    @pipeline.sink(Topic(f"{NAME}-large", key="visitor", partitions=1))
    def large(clicks: DataFrame) -> DataFrame:
        return clicks.where("price > 150").select("visitor", "id", "price")

    return pipeline


@pytest.fixture(scope="module")
def played(
    spark: SparkSession, broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Played]:
    root = tmp_path_factory.mktemp("clickstream")
    (root / "lake").mkdir()
    catalog = {"type": "sql", "uri": f"sqlite:///{root}/catalog.db", "warehouse": f"file://{root}/lake"}
    load_catalog(**catalog).create_namespace("web")
    make_topic(broker.bootstrap, NAME, partitions=PARTITIONS)
    pipeline = declared(root, catalog)
    create(pipeline, broker.bootstrap, missing_topics(pipeline, broker.bootstrap))
    sent = clicks(2_000, seed=7)
    half = len(sent.messages) // 2
    for messages in (sent.messages[:half], [*sent.messages[half:], *[last_click()] * PARTITIONS], []):
        _feed(broker.bootstrap, messages)
        Runner(spark, pipeline, broker.bootstrap, PipelineState(root / "state", NAME)).run(to_the_end=True)
    yield Played(sent, broker.bootstrap, root, catalog)
    for query in spark.streams.active:
        query.stop()


def _feed(bootstrap: str, values: list[bytes]) -> None:
    messages = [{"value": value, "partition": number % PARTITIONS} for number, value in enumerate(values)]
    assert [error for error, _ in send(bootstrap, NAME, messages) if error] == []


@pytest.fixture
def expected(played: Played) -> Callable[[str], list[tuple[Any, ...]]]:
    """Rows that DuckDB computes from the clicks, each of which counts once."""
    database = duckdb.connect()
    database.execute("set timezone = 'UTC'")
    database.register("clicks", pa.Table.from_pylist(played.clicks.rows))
    return lambda query: database.execute(query).fetchall()


def in_duckdb(table: DeltaTable, query: str) -> list[tuple[Any, ...]]:
    """Rows of a table as DuckDB reads its files; `{files}` stands for them."""
    database = duckdb.connect()
    database.execute("set timezone = 'UTC'")
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    return database.execute(query.format(files=f"read_parquet({files}, hive_partitioning=true)")).fetchall()


def test_every_click_is_in_its_day_as_often_as_it_was_sent(
    played: Played, expected: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    by_day = 'select cast("at" as date) as day, count(distinct id) from {} group by all order by all'

    stored = in_duckdb(played.delta, by_day.format("{files} where id <> 'last'"))
    messages = sorted(json.loads(each)["id"] for each in played.clicks.messages if each.endswith(b"}"))
    archived = pl.scan_delta(str(played.root / "clicks")).filter(pl.col("id") != "last").collect()

    assert stored == expected(by_day.format("clicks"))
    assert len(stored) == 2  # midnight is within
    assert sorted(archived["id"]) == messages
    assert (archived["day"] == archived["at"].dt.date()).all()


def test_windows_have_the_counts_of_distinct_clicks(
    played: Played, expected: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    found = in_duckdb(
        played.windows, "select begins, page, clicks, visitors from {files} where page <> '-' order by all"
    )

    assert found == expected(WINDOWS_SQL)


def test_visitors_have_their_latest_click(
    played: Played, expected: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    table = DeltaTable(str(played.root / "visitors"))

    found = in_duckdb(table, "select visitor, page, country, id from {files} order by visitor")

    assert found == expected(
        """select visitor, last.page, last.country, last.id
           from (select visitor, arg_max(clicks, ("at", id)) as last from clicks group by visitor)
           order by visitor"""
    )


@pytest.mark.filterwarnings("ignore:Iceberg scan planning:polars.exceptions.PerformanceWarning")
def test_payments_are_read_from_iceberg_with_their_sum(
    played: Played, expected: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    table = load_catalog(**played.catalog).load_table("web.payments")

    found = pl.scan_iceberg(table).unique("id").select(pl.len(), pl.col("price").sum().round(2)).collect()

    assert found.rows() == expected(
        "select count(*), round(sum(price), 2) from clicks where price is not null"
    )


def test_large_payments_are_in_the_topic(
    played: Played, expected: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    found = {json.loads(each.value())["id"] for each in played.records(f"{NAME}-large")}

    assert found == {row[0] for row in expected("select id from clicks where price > 150")}


def test_what_is_no_click_is_a_dead_letter(played: Played) -> None:
    letters = played.records(f"{NAME}.dead-letters", PARTITIONS)

    assert len(letters) == played.clicks.unreadable
    assert {each.value() for each in letters} == {b'{"id": "half a cl'}
