"""What only ours can: columns that nobody asked for are not built, filters shorten what is fetched."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import DataFrame

from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from spark.queries import OURS, THEIRS, Queries, in_order
from spark.session import SETTINGS
from spark.topics import CODECS, PER_CODEC, SIZES

ZONE: Final = "spark.sql.session.timeZone"
PUSH_DOWN: Final = "spark.sql.python.filterPushdown.enabled"
MOMENT: Final = datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000 + 1000, UTC)  # of record 1000

FILTERS: Final[dict[str, tuple[int, int]]] = {
    "partition = 1": (1, 30),
    "partition IN (1, 3)": (2, 37),
    "partition >= 1": (2, 37),
    "partition <=> 3": (1, 7),
    "topic = 'skewed'": (3, sum(SIZES)),
    "topic = 'shapes'": (0, 0),
    "offset = 1234": (1, 1),
    "offset > 109 AND offset < 200": (1, 90),
    "partition = 1 AND offset <= 20": (1, 21),
    f"timestamp >= '{MOMENT}'": (1, 1000),
    f"timestamp > '{MOMENT}'": (1, 999),
    f"timestamp < '{MOMENT}'": (3, 1037),
    f"timestamp = '{MOMENT}'": (1, 1),
    "value = 'value 5'": (3, 3),
    "partition = 0 OR offset < 4": (3, 2008),
    "NOT partition = 0": (3, 37),
    "key IS NULL": (3, 0),
    "offset IN (3, 1999)": (3, 4),
}
"""Conditions; how many partitions are left to read of three with records, how many rows there are."""
QUICK: Final = {
    "partition IN (1, 3)",
    "topic = 'shapes'",
    "partition = 1 AND offset <= 20",
    f"timestamp > '{MOMENT}'",
    f"timestamp < '{MOMENT}'",
    "value = 'value 5'",
    "NOT partition = 0",
    "offset IN (3, 1999)",
}
"""One condition of each kind; tests/unit/spark/test_filters.py has every operator on every column."""


@pytest.fixture
def push_down(queries: Queries) -> Iterator[None]:
    queries.spark.conf.set(PUSH_DOWN, "true")
    yield
    queries.spark.conf.unset(PUSH_DOWN)


def planned(table: DataFrame) -> int:
    return table.rdd.getNumPartitions()


@pytest.mark.usefixtures("push_down")
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param(condition, expected, marks=[] if condition in QUICK else pytest.mark.long)
        for condition, expected in FILTERS.items()
    ],
)
def test_a_filter_that_is_pushed_down_shortens_the_plan_and_not_the_rows(
    queries: Queries, condition: str, expected: tuple[int, int]
) -> None:
    parts, count = expected
    filtered = queries.table(OURS, subscribe="skewed").where(condition)

    rows = in_order(filtered.collect())
    theirs = queries.table(THEIRS, subscribe="skewed").where(condition)
    assert rows == in_order(theirs.collect())
    assert len(rows) == count
    assert planned(filtered) <= max(parts, 1)  # small ranges may share a task


def test_filters_work_as_well_where_spark_does_not_push_them_down(queries: Queries) -> None:
    table = queries.table(OURS, subscribe="skewed", minPartitions="2")  # as few records would share a task

    assert queries.spark.conf.get(PUSH_DOWN) == "false"
    assert table.where("partition = 1 AND offset >= 10").count() == 20
    assert planned(table.where("partition = 1")) == planned(table) > 1


@pytest.mark.usefixtures("push_down")
def test_a_moment_is_meant_in_the_time_zone_of_the_session(queries: Queries) -> None:
    queries.spark.conf.set(ZONE, "America/New_York")
    try:
        there = MOMENT.astimezone(ZoneInfo("America/New_York")).replace(tzinfo=None)
        filtered = queries.table(OURS, subscribe="skewed").where(f"timestamp >= '{there}'")
        assert (planned(filtered), filtered.count()) == (1, 1000)
    finally:
        queries.spark.conf.set(ZONE, SETTINGS[ZONE])


@pytest.mark.usefixtures("push_down")
def test_filters_and_columns_of_ones_own_go_together(queries: Queries) -> None:
    table = queries.table(OURS, schema="offset long, value binary, partition int", subscribe="skewed")

    assert [tuple(row) for row in table.where("partition = 3 AND offset > 5").collect()] == [
        (6, b"value 6", 3)
    ]


@pytest.mark.parametrize(
    "schema",
    [
        "value binary",
        "key binary",
        "offset long, timestampType int, timestamp timestamp",
        "topic string, partition int",
        "headers array<struct<key: string, value: binary>>",
        "headers array<struct<key: string, value: binary>>, value binary, key binary",
    ],
)
def test_the_columns_that_a_schema_names_are_those_of_the_whole_table(queries: Queries, schema: str) -> None:
    chosen = queries.table(OURS, schema=schema, subscribe="shapes")
    whole = queries.table(THEIRS, subscribe="shapes", includeHeaders=True).select(*chosen.columns)

    assert chosen.schema == whole.schema
    rows = in_order(chosen.collect())
    assert len(rows) == len(CODECS) * PER_CODEC
    assert rows == in_order(whole.collect())


def test_a_stream_may_have_columns_of_its_own(queries: Queries) -> None:
    options = queries.options({"subscribe": "skewed", "startingOffsets": "earliest"})
    table = queries.spark.readStream.format(OURS).options(**options).schema("value binary").load()
    query = table.writeStream.format("memory").queryName("only_values").trigger(availableNow=True).start()

    assert query.awaitTermination(60)
    assert queries.spark.table("only_values").columns == ["value"]
    assert queries.spark.table("only_values").where("value = 'value 6'").count() == 3
