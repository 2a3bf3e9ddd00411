"""`spark.read` with our connector and with Spark's own: the same rows, columns and types."""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from spark.queries import OURS, Queries
from spark.topics import CODECS, PER_CODEC, REWRITES, SIZES

SHAPES: Final = len(CODECS) * PER_CODEC
SKEWED: Final = sum(SIZES)
AT_1000: Final = FIRST_TIMESTAMP_MS + 1_000_000  # of record 1000 in `skewed`
AT_10: Final = FIRST_TIMESTAMP_MS + 10_000


def every(topic: str, partitions: int, **others: int) -> dict[str, dict[str, int]]:
    """JSON that names each partition: `rest` for all but those that are given as p0=…, p1=…."""
    rest = others.pop("rest", 0)
    return {topic: {str(n): others.get(f"p{n}", rest) for n in range(partitions)}}


QUERIES: Final[dict[str, tuple[int, dict[str, Any]]]] = {
    "one topic, every codec": (SHAPES, {"subscribe": "shapes"}),
    "with headers": (SHAPES, {"subscribe": "shapes", "includeHeaders": True}),
    "two topics": (SHAPES + SKEWED, {"subscribe": "shapes, skewed"}),
    "topics by a pattern": (SHAPES + SKEWED, {"subscribePattern": "s(hapes|kew.*)"}),
    "a pattern that nothing matches": (0, {"subscribePattern": "nothing-.*"}),
    "some partitions": (PER_CODEC * 2 + 7, {"assign": json.dumps({"shapes": [0, 4], "skewed": [3, 2]})}),
    "timestamps of the broker": (20, {"subscribe": "append-time"}),
    "an empty topic": (0, {"subscribe": "empty"}),
    "an empty topic with headers": (0, {"subscribe": "empty", "includeHeaders": True}),
    "earliest to latest, said aloud": (
        SHAPES,
        {"subscribe": "shapes", "startingOffsets": "earliest", "endingOffsets": "latest"},
    ),
    "from offsets": (
        1990 + 30 + 2,
        {"subscribe": "skewed", "startingOffsets": json.dumps(every("skewed", 4, p0=10, p1=-2, p3=5))},
    ),
    "up to offsets": (
        123 + 30,
        {"subscribe": "skewed", "endingOffsets": json.dumps(every("skewed", 4, p0=123, p1=-1))},
    ),
    "between offsets, in the middle of compressed batches": (
        len(CODECS) * 11,
        {
            "subscribe": "shapes",
            "startingOffsets": json.dumps(every("shapes", 5, rest=13)),
            "endingOffsets": json.dumps(every("shapes", 5, rest=24)),
        },
    ),
    "up to a timestamp": (10 + 10 + 7, {"subscribe": "skewed", "endingTimestamp": AT_10}),
    "up to a timestamp that is still to come": (SKEWED, {"subscribe": "skewed", "endingTimestamp": 2**42}),
    "from a timestamp that some partitions do not reach": (
        1000,
        {"subscribe": "skewed", "startingTimestamp": AT_1000, "startingOffsetsByTimestampStrategy": "latest"},
    ),
    "from a timestamp among records that are not in its order": (
        len(CODECS) * (PER_CODEC - 10),
        {"subscribe": "shapes", "startingTimestamp": AT_10},
    ),
    "by timestamps of each partition": (
        990 + 5,
        {
            "assign": json.dumps({"skewed": [0, 1]}),
            "startingOffsetsByTimestamp": json.dumps({"skewed": {"0": AT_10, "1": AT_10 + 1}}),
            "endingOffsetsByTimestamp": json.dumps({"skewed": {"0": AT_1000, "1": AT_10 + 6000}}),
        },
    ),
    "a timestamp to begin with, offsets to end with": (
        90,
        {
            "assign": json.dumps({"skewed": [0]}),
            "startingTimestamp": AT_10,
            "endingOffsets": json.dumps({"skewed": {"0": 100}}),
        },
    ),
    "a timestamp counts more than offsets": (
        20,
        {
            "assign": json.dumps({"skewed": [1]}),
            "startingTimestamp": AT_10,
            "startingOffsets": json.dumps({"skewed": {"0": 3, "1": 29}}),
        },
    ),
    "small pieces": (SKEWED, {"subscribe": "skewed", "kafka.max.partition.fetch.bytes": 2000}),
    "options in other letters": (SHAPES, {"SUBSCRIBE": "shapes", "startingoffsets": "EARLIEST"}),
}

LONG: Final = {
    # test_both_see_the_nulls_the_headers_and_the_types_of_timestamps reads the same two topics with headers.
    "with headers",
    "timestamps of the broker",
    # A pattern also reads two topics, and the empty topic is read without headers.
    "two topics",
    "an empty topic with headers",
    # tests/unit/spark/test_options.py has what these options mean, and which of them counts.
    "earliest to latest, said aloud",
    "up to a timestamp that is still to come",
    "a timestamp to begin with, offsets to end with",
    "a timestamp counts more than offsets",
    "options in other letters",
}
"""Queries whose subject a shorter test covers."""


@pytest.mark.parametrize(
    ("count", "options"),
    [
        pytest.param(*case, id=name, marks=pytest.mark.long if name in LONG else [])
        for name, case in QUERIES.items()
    ],
)
def test_both_return_the_same_rows(queries: Queries, count: int, options: dict[str, Any]) -> None:
    assert len(queries.same(**options)) == count


def test_both_see_the_nulls_the_headers_and_the_types_of_timestamps(queries: Queries) -> None:
    rows = queries.same(subscribe="shapes,append-time", includeHeaders=True)

    assert {row[6] for row in rows if row[2] == "append-time"} == {1}
    assert {row[6] for row in rows if row[2] == "shapes"} == {0}
    assert {row[0] is None for row in rows} == {row[1] is None for row in rows} == {True, False}
    assert {tuple(tuple(each) for each in row[7] or ()) for row in rows} >= {
        (),
        (("n", b"3"), ("empty", b""), ("null", None)),
    }


@pytest.mark.parametrize("wanted", [4, 9])
def test_pieces_of_a_large_partition_are_even_and_small_partitions_stay_whole(
    queries: Queries, wanted: int
) -> None:
    table = queries.table(OURS, subscribe="skewed", minPartitions=wanted)

    pieces = table.groupBy(sql.spark_partition_id(), "partition").count().collect()
    large = [row["count"] for row in pieces if row["partition"] == 0]
    assert len(large) == wanted - 2
    assert max(large) - min(large) <= 1
    assert sorted(row["count"] for row in pieces if row["partition"] != 0) == [7, 30]


def test_no_task_has_more_records_than_allowed(queries: Queries) -> None:
    table = queries.table(OURS, subscribe="skewed", maxRecordsPerPartition=300)

    sizes = [row[1] for row in table.groupBy(sql.spark_partition_id()).count().collect()]
    assert sum(sizes) == SKEWED
    assert max(sizes) <= 300
    assert len(sizes) == 7 + 1  # one task reads the two small partitions


def test_both_pass_over_what_compaction_has_removed(queries: Queries) -> None:
    offsets = [row[4] for row in queries.same(subscribe="compacted")]

    assert len(offsets) < REWRITES // 2
    assert offsets[-1] == REWRITES - 1
    for first in (offsets[0] + 1, offsets[-1]):
        start = json.dumps({"compacted": {"0": first}})
        found = queries.same(subscribe="compacted", startingOffsets=start)
        assert [row[4] for row in found] == [each for each in offsets if each >= first]


def test_tasks_may_begin_and_end_where_compaction_left_nothing(queries: Queries) -> None:
    pieces = queries.rows(OURS, subscribe="compacted", minPartitions=20)

    assert pieces == queries.rows(OURS, subscribe="compacted")


def test_a_table_that_is_read_twice_is_read_anew(queries: Queries) -> None:
    table = queries.table(OURS, subscribe="shapes")

    assert table.count() == table.distinct().count() == SHAPES


def test_spark_finds_ours_by_itself(queries: Queries, spark: SparkSession) -> None:
    """A session of its own knows nothing of what others have registered."""
    own = Queries(spark.newSession(), queries.bootstrap, Path())

    assert own.table(OURS, subscribe="shapes").count() == SHAPES
