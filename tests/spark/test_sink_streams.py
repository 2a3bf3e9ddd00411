"""Streams into topics: each row once as long as nothing fails, and again with a batch that is repeated."""

from collections import Counter
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.query import StreamingQuery

from spark.queries import OURS, STREAM_TIMEOUT_S, Queries
from spark.topics import FOREVER, plain, write
from spark.written import found, new_topic, save, values

pytestmark = pytest.mark.extended


def copy(queries: Queries, source: str, target: str) -> StreamingQuery:
    """Write what is new in `source` since the last time, in batches of 40."""
    options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 40}
    table = queries.spark.readStream.format(OURS).options(**queries.options(options)).load()
    query = (
        table.writeStream.format(OURS)
        .options(**queries.options({"topic": target}))
        .option("checkpointLocation", str(queries.checkpoint(OURS, target)))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)
    return query


def topics(queries: Queries) -> tuple[str, str]:
    return new_topic(queries, "source", retention_ms=FOREVER), new_topic(queries, "target")


def test_a_stream_goes_on_after_a_restart_and_writes_every_row_once(queries: Queries) -> None:
    source, target = topics(queries)
    write(queries.bootstrap, source, plain(100))
    copy(queries, source, target)
    write(queries.bootstrap, source, plain(50, first=100))
    copy(queries, source, target)
    copy(queries, source, target)

    assert found(queries, target) == found(queries, source)
    assert len(found(queries, target)) == 150


def test_a_batch_of_which_spark_does_not_know_that_it_was_written_is_written_again(queries: Queries) -> None:
    """As after a crash between the write and the note about it in the checkpoint."""
    source, target = topics(queries)
    write(queries.bootstrap, source, plain(100))
    copy(queries, source, target)
    commits = queries.checkpoint(OURS, target) / "commits"
    for note in commits.glob("*2*"):
        note.unlink()
    copy(queries, source, target)

    once = values(found(queries, source))
    assert values(found(queries, target)) == once + once[80:]


def test_updates_are_written_batch_by_batch(queries: Queries) -> None:
    """Spark lets no Python sink have the mode update; foreachBatch is the way."""
    source, target = topics(queries)
    write(queries.bootstrap, source, plain(100))
    options = {"subscribe": source, "startingOffsets": "earliest", "maxOffsetsPerTrigger": 60}
    table = queries.spark.readStream.format(OURS).options(**queries.options(options)).load()
    counts = table.groupBy((sql.col("offset") % 2).cast("string").alias("key")).agg(
        sql.count("*").cast("string").alias("value")
    )

    def write_updates(batch: DataFrame, _: int) -> None:
        save(queries, batch, topic=target)

    query: Any = counts.writeStream.foreachBatch(write_updates).outputMode("update")
    query = query.option("checkpointLocation", str(queries.checkpoint(OURS, target)))
    assert query.trigger(availableNow=True).start().awaitTermination(STREAM_TIMEOUT_S)

    assert Counter((each.key, each.value) for each in found(queries, target)) == Counter(
        [(b"0", b"30"), (b"1", b"30"), (b"0", b"50"), (b"1", b"50")]
    )
