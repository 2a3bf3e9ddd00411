"""Spark's real-time mode (4.1 and newer) with Spark's own connector on Headrace.

Python sources and sinks cannot take part in it, and Spark says so.
"""

from functools import partial
from typing import Any, Final

import pytest
from pyspark.errors import PySparkException

from cluster.waiting import until
from spark.queries import OURS, STREAM_TIMEOUT_S, THEIRS, Queries
from spark.topics import FOREVER, plain, write
from wire.confluent import make_topic, read
from wire.requests import fresh_name

BATCH: Final = "10 seconds"
MINIMUM: Final = "spark.sql.streaming.realTimeMode.minBatchDuration"

pytestmark = pytest.mark.long


def start(queries: Queries, source: str, target: str, *, reads: str = THEIRS, writes: str = THEIRS) -> Any:
    options = queries.options({"subscribe": source, "startingOffsets": "earliest"})
    table = queries.spark.readStream.format(reads).options(**options).load()
    writer: Any = (  # pyspark's declarations lack realTime
        table.select("key", "value")
        .writeStream.format(writes)
        .options(**queries.options({"topic": target}))
        .option("checkpointLocation", str(queries.checkpoint(reads, target)))
        .outputMode("update")
    )
    return writer.trigger(realTime=BATCH).start()


@pytest.fixture
def topics(queries: Queries) -> tuple[str, str]:
    names = fresh_name("quick"), fresh_name("quicker")
    for name in names:
        make_topic(queries.bootstrap, name, retention_ms=FOREVER)
    queries.spark.conf.set(MINIMUM, "10s")
    return names


def test_records_arrive_while_their_batch_is_running(queries: Queries, topics: tuple[str, str]) -> None:
    source, target = topics
    query = start(queries, source, target)

    def arrived(count: int) -> bool:
        error = query.exception()
        if error is not None:
            raise error
        return len(read(queries.bootstrap, target)) >= count

    for count in (5, 10, 15):
        write(queries.bootstrap, source, plain(5, first=count - 5))
        until("the records have arrived", partial(arrived, count), timeout_s=STREAM_TIMEOUT_S)
    query.stop()

    assert [each.value() for each in read(queries.bootstrap, target)] == [b"value %d" % n for n in range(15)]


def test_python_sources_and_sinks_are_refused(queries: Queries, topics: tuple[str, str]) -> None:
    with pytest.raises(PySparkException, match="SINK_NOT_IN_ALLOWLIST"):
        start(queries, *topics, writes=OURS)
    query = start(queries, *topics, reads=OURS)
    with pytest.raises(PySparkException, match="INPUT_STREAM_NOT_SUPPORTED"):
        query.awaitTermination(STREAM_TIMEOUT_S)
