"""Streams and tables that are written to topics with exactlyOnce=true."""

import hashlib
from typing import Any, Final

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from headrace.client.admin.admin import Admin
from spark.queries import OURS, STREAM_TIMEOUT_S, Queries
from spark.topics import FOREVER, plain, write
from spark.written import found, new_topic, numbers, save, values

pytestmark = pytest.mark.extended

ONCE: Final = {"exactlyOnce": "true"}


def copy(queries: Queries, source: str, **options: Any) -> StreamingQuery:
    """Write what is new in `source` since the last time, in batches of 40."""
    reading = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40}
    table = queries.spark.readStream.format(OURS).options(**queries.options(reading)).load()
    if "topic" not in options:
        table = table.drop("topic").withColumn("topic", sql.col("key").cast("string"))
    query = (
        table.writeStream.format(OURS)
        .options(**queries.options(ONCE | options))
        .option("checkpointLocation", str(queries.checkpoint(OURS, source)))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)
    return query


def forget_commits(queries: Queries, source: str, pattern: str) -> None:
    """Leave the checkpoint as after a crash between the sink's commit and Spark's."""
    notes = list((queries.checkpoint(OURS, source) / "commits").glob(pattern))
    assert notes
    for note in notes:
        note.unlink()


def test_a_batch_that_spark_repeats_is_written_once(queries: Queries) -> None:
    source, target = new_topic(queries, "source", retention_ms=FOREVER), new_topic(queries, "target")
    write(queries.bootstrap, source, plain(100))
    copy(queries, source, topic=target)
    forget_commits(queries, source, "*2*")
    copy(queries, source, topic=target)
    write(queries.bootstrap, source, plain(20, first=100))
    copy(queries, source, topic=target)

    assert values(found(queries, target)) == values(found(queries, source))
    assert len(found(queries, target)) == 120


def test_the_topics_of_a_batch_are_written_together(queries: Queries) -> None:
    """The number of the batch is recorded for each topic, and found although one of them is deleted."""
    targets = sorted(new_topic(queries, "one-of-two") for _ in range(2))
    rows = queries.spark.range(100).selectExpr(
        f"IF(id % 2 = 0, '{targets[0]}', '{targets[1]}') AS topic", "CAST(id AS string) AS value"
    )
    save(queries, rows, **ONCE, txnAppId=targets[0], txnVersion=0)
    Admin(queries.bootstrap).delete_topic(targets[0])
    save(queries, rows.where(f"topic = '{targets[1]}'"), **ONCE, txnAppId=targets[0], txnVersion=0)

    assert numbers(found(queries, targets[1])) == list(range(1, 100, 2))


def test_a_stream_may_name_the_topic_in_a_column(queries: Queries) -> None:
    source, target = new_topic(queries, "source", retention_ms=FOREVER), new_topic(queries, "target")
    rows = queries.spark.range(90).selectExpr(f"'{target}' AS key", "CAST(id AS string) AS value")
    save(queries, rows, topic=source)
    copy(queries, source)
    forget_commits(queries, source, "*2*")
    copy(queries, source)

    assert numbers(found(queries, target)) == list(range(90))


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_table_larger_than_messages_goes_through_a_staging_topic(queries: Queries, codec: str) -> None:
    target = new_topic(queries, partitions=3)
    rows = queries.spark.range(0, 40_000, 1, 5).selectExpr(
        "CAST(id AS string) AS key", "concat(id, ' ', sha2(CAST(id AS string), 512)) AS value"
    )
    save(queries, rows, topic=target, kafka_compression_type=codec, **ONCE)

    records = found(queries, target, partitions=3)
    assert sorted(int(each.key or b"") for each in records) == list(range(40_000))
    assert all(each.value == b"%s %s" % (each.key, _sha512(each.key)) for each in records)
    names = [each.name for each in Admin(queries.bootstrap).list_topics()]
    assert not [each for each in names if each.startswith("headrace-spark-") and each.endswith("-staging")]


def test_foreach_batch_is_exactly_once_with_an_application_and_a_version(queries: Queries) -> None:
    source, target = new_topic(queries, "source", retention_ms=FOREVER), new_topic(queries, "target")
    write(queries.bootstrap, source, plain(100))

    def append(batch: DataFrame, number: int) -> None:
        save(queries, batch.select("value"), topic=target, **ONCE, txnAppId=source, txnVersion=number)

    def run() -> None:
        options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
        table = queries.spark.readStream.format(OURS).options(**queries.options(options)).load()
        query: Any = table.writeStream.foreachBatch(append)
        query = query.option("checkpointLocation", str(queries.checkpoint(OURS, source)))
        assert query.trigger(availableNow=True).start().awaitTermination(STREAM_TIMEOUT_S)

    run()
    forget_commits(queries, source, "*1*")
    run()

    assert values(found(queries, target)) == values(found(queries, source))


def test_a_task_that_fails_leaves_nothing_visible(queries: Queries) -> None:
    target = new_topic(queries)
    rows = queries.spark.range(0, 1000, 1, 4).selectExpr(
        "IF(id = 999, raise_error('no more'), CAST(id AS string)) AS value"
    )
    with pytest.raises(Exception, match="no more"):
        save(queries, rows, topic=target, **ONCE)

    assert found(queries, target) == []


def _sha512(key: bytes | None) -> bytes:
    return hashlib.sha512(key or b"").hexdigest().encode()
