"""Spark's own connector, unchanged, against Headrace: it reads and writes what other clients do."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest
from pyspark.sql import functions as sql

from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS
from spark.queries import THEIRS, Queries, Rows
from spark.topics import CODECS, FOREVER, PER_CODEC, SIZES, plain, write
from wire.confluent import make_topic, read
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

DEPRECATED: Final = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"


@pytest.fixture(params=["false", "true"], ids=["by an admin client", "by a consumer group"])
def offsets_by(queries: Queries, request: pytest.FixtureRequest) -> Iterator[str]:
    """The two ways in which it asks for offsets."""
    queries.spark.conf.set(DEPRECATED, request.param)
    yield request.param
    queries.spark.conf.unset(DEPRECATED)


def seen_by_others(bootstrap: str, topic: str, partitions: int) -> Rows:
    found = read(bootstrap, topic, partitions=range(partitions))
    return sorted(
        (each.key(), each.value(), topic, each.partition(), each.offset(), each.timestamp()[1])
        for each in found
    )


def seen_by_spark(rows: Rows) -> Rows:
    return sorted((*row[:5], round(row[5].timestamp() * 1000)) for row in rows)


@pytest.mark.usefixtures("offsets_by")
def test_it_reads_in_batch_what_another_client_reads(queries: Queries) -> None:
    rows = queries.rows(THEIRS, subscribe="skewed", minPartitions=6)

    assert len(rows) == sum(SIZES)
    assert seen_by_spark(rows) == seen_by_others(queries.bootstrap, "skewed", len(SIZES))


@pytest.mark.usefixtures("offsets_by")
def test_it_finds_offsets_by_timestamps(queries: Queries) -> None:
    by_partition = json.dumps({"shapes": {str(n): FIRST_TIMESTAMP_MS + 10_000 for n in range(len(CODECS))}})
    until = FIRST_TIMESTAMP_MS + 20_000

    rows = queries.rows(
        THEIRS, subscribe="shapes", startingOffsetsByTimestamp=by_partition, endingTimestamp=until
    )
    assert {row[4] for row in rows} == set(range(10, 20))
    assert len(rows) == len(CODECS) * 10


@pytest.mark.usefixtures("offsets_by")
def test_it_reads_as_a_stream_and_goes_on_after_a_restart(queries: Queries) -> None:
    topic = fresh_name("theirs")
    make_topic(queries.bootstrap, topic, partitions=2, retention_ms=FOREVER)
    options: dict[str, Any] = {"name": topic, "subscribe": topic, "maxOffsetsPerTrigger": 5}
    write(queries.bootstrap, topic, plain(12), 0)
    first = queries.stream(THEIRS, **options).finish()
    write(queries.bootstrap, topic, plain(3), 1)
    second = queries.stream(THEIRS, **options).finish()

    assert [len(each.rows()) for each in (first, second)] == [12, 3]
    assert seen_by_spark(first.rows() + second.rows()) == seen_by_others(queries.bootstrap, topic, 2)


@pytest.mark.usefixtures("offsets_by")
def test_it_reads_only_what_is_committed_when_told_to(queries: Queries) -> None:
    rows = queries.rows(THEIRS, subscribe="shapes", **{"kafka.isolation.level": "read_committed"})

    assert len(rows) == len(CODECS) * PER_CODEC


def test_it_writes_a_table(queries: Queries) -> None:
    topic = fresh_name("written")
    make_topic(queries.bootstrap, topic, partitions=3)
    table = queries.spark.range(300).select(
        sql.col("id").cast("string").alias("key"),
        sql.concat(sql.lit("value "), sql.col("id")).alias("value"),
        (sql.col("id") % 3).cast("int").alias("partition"),
        sql.array(sql.struct(sql.lit("h").alias("key"), sql.lit(b"1").alias("value"))).alias("headers"),
    )
    table.write.format(THEIRS).options(
        **queries.options({"topic": topic, "includeHeaders": True, "kafka.compression.type": "lz4"})
    ).save()

    found = read(queries.bootstrap, topic, partitions=range(3))
    assert {each.key() for each in found} == {b"%d" % n for n in range(300)}
    assert len(found) == 300
    assert {(int(each.key()) % 3 == each.partition(), tuple(each.headers())) for each in found} == {
        (True, (("h", b"1"),))
    }


def test_it_writes_a_stream(queries: Queries) -> None:
    topic = fresh_name("copied")
    make_topic(queries.bootstrap, topic, partitions=len(SIZES))
    source = queries.options(
        {"subscribe": "skewed", "startingOffsets": "earliest", "maxOffsetsPerTrigger": 900}
    )
    table = queries.spark.readStream.format(THEIRS).options(**source).load()
    query = (
        table.select("key", "value", "partition")
        .writeStream.format(THEIRS)
        .options(**queries.options({"topic": topic}))
        .option("checkpointLocation", str(queries.checkpoint(THEIRS, "copied")))
        .trigger(availableNow=True)
        .start()
    )

    assert query.awaitTermination(90)
    copied = seen_by_others(queries.bootstrap, topic, len(SIZES))
    original = seen_by_others(queries.bootstrap, "skewed", len(SIZES))
    assert [(row[0], row[1], row[3]) for row in copied] == [(row[0], row[1], row[3]) for row in original]
