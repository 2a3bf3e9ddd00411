"""A new query begins at the same offsets until its first batch is committed, as with Spark's connector."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import DataLoss
from headrace.spark.offsets import from_json
from spark.queries import BOTH, OURS, THEIRS, Queries
from spark.readers import ALL, offsets_of, stream_reader
from spark.topics import FOREVER, plain, write
from wire.confluent import make_topic
from wire.process import BrokerProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended


def new_topic(bootstrap: str, records: int) -> str:
    topic = fresh_name("begins")
    make_topic(bootstrap, topic, retention_ms=FOREVER)
    write(bootstrap, topic, plain(records))
    return topic


# -- readers driven as Spark drives them -------------------------------------------------------


@pytest.mark.parametrize("starting", ["latest", "earliest", "timestamp"])
def test_a_first_batch_is_the_same_after_a_restart(broker: BrokerProcess, starting: str) -> None:
    topic = new_topic(broker.bootstrap, 5)
    options = {"startingOffsets": starting}
    if starting == "timestamp":  # after the last record, so it is the end: another one after the restart
        options = {"startingTimestamp": "9999999999999", "startingOffsetsByTimestampStrategy": "latest"}
    first = stream_reader(broker.bootstrap, subscribe=topic, **options)
    end = json.loads(json.dumps(first.latestOffset(first.initialOffset(), ALL)))
    planned = offsets_of(first, first.partitions(first.initialOffset(), end))
    write(broker.bootstrap, topic, plain(20, first=5))
    again = offsets_of(first, first.partitions(first.initialOffset(), end))
    first.stop()
    second = stream_reader(broker.bootstrap, subscribe=topic, **options)
    repeated = offsets_of(second, second.partitions(second.initialOffset(), end))
    rest = offsets_of(second, second.partitions(end, second.latestOffset(end, ALL)))
    second.stop()

    assert planned == again == repeated == ([*range(5)] if starting == "earliest" else [])
    assert rest == list(range(5, 25))


def test_a_query_that_reads_what_is_there_may_begin_after_that(broker: BrokerProcess) -> None:
    """Spark has it look at the end of the run before it asks where the query begins."""
    topic = new_topic(broker.bootstrap, 5)
    reader = stream_reader(broker.bootstrap, subscribe=topic, startingOffsets="latest")
    reader.prepareForTriggerAvailableNow()
    write(broker.bootstrap, topic, plain(3, first=5))
    end = reader.latestOffset(reader.initialOffset(), ALL)
    write(broker.bootstrap, topic, plain(3, first=8))

    assert from_json(end) == {TopicPartition(topic, 0): 8}
    assert offsets_of(reader, reader.partitions(reader.initialOffset(), end)) == []
    assert reader.latestOffset(end, ALL) == end
    reader.stop()


def test_a_partition_that_is_new_after_a_restart_does_not_change_the_first_batch(
    broker: BrokerProcess,
) -> None:
    prefix = fresh_name("begins")
    make_topic(broker.bootstrap, f"{prefix}-a", retention_ms=FOREVER)
    options = {"subscribePattern": f"{prefix}-.*", "startingOffsets": "latest"}
    first = stream_reader(broker.bootstrap, **options)
    end = first.latestOffset(first.initialOffset(), ALL)
    first.stop()
    make_topic(broker.bootstrap, f"{prefix}-b", retention_ms=FOREVER)
    write(broker.bootstrap, f"{prefix}-b", plain(3))
    second = stream_reader(broker.bootstrap, **options)

    assert offsets_of(second, second.partitions(second.initialOffset(), end)) == []
    assert offsets_of(second, second.partitions(end, second.latestOffset(end, ALL))) == [0, 1, 2]
    second.stop()


def test_a_new_query_begins_at_offsets_that_were_looked_up_before(broker: BrokerProcess) -> None:
    prefix = fresh_name("begins")
    for name in "ab":
        make_topic(broker.bootstrap, f"{prefix}-{name}", retention_ms=FOREVER)
        write(broker.bootstrap, f"{prefix}-{name}", plain(4))
    initial = json.dumps({f"{prefix}-a": {"0": 3}})
    reader = stream_reader(broker.bootstrap, subscribePattern=f"{prefix}-.*", initialOffsets=initial)
    end = reader.latestOffset(reader.initialOffset(), ALL)

    assert offsets_of(reader, reader.partitions(reader.initialOffset(), end)) == [3, 0, 1, 2, 3]
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_checkpoint_that_does_not_say_where_its_first_batch_begins_is_no_silent_loss(
    broker: BrokerProcess, fails: bool
) -> None:
    """As earlier versions leave it, and Spark's own connector, which keeps the offsets elsewhere."""
    topic = new_topic(broker.bootstrap, 5)
    end = {topic: {"0": 5}}
    options = {"subscribe": topic, "startingOffsets": "latest", "failOnDataLoss": str(fails)}
    reader = stream_reader(broker.bootstrap, **options)
    if fails:
        with pytest.raises(DataLoss, match=f"ends at offset 5 of {topic}-0, .* the option initialOffsets"):
            reader.partitions(reader.initialOffset(), end)
    else:
        assert reader.partitions(reader.initialOffset(), end) == []
    reader.stop()
    told = stream_reader(broker.bootstrap, **options, initialOffsets=json.dumps({topic: {"0": 2}}))
    assert offsets_of(told, told.partitions(told.initialOffset(), end)) == [2, 3, 4]
    told.stop()
    earliest = stream_reader(broker.bootstrap, subscribe=topic)
    assert offsets_of(earliest, earliest.partitions(earliest.initialOffset(), end)) == list(range(5))
    earliest.stop()


# -- queries -----------------------------------------------------------------------------------


@contextmanager
def written_to(bootstrap: str, topic: str) -> Iterator[None]:
    """A topic that gets records all the time."""
    over = threading.Event()

    def keep_writing() -> None:
        while not over.is_set():
            write(bootstrap, topic, plain(10))

    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


@pytest.mark.parametrize("now", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_query_from_the_latest_offset_begins_on_a_topic_that_is_written_to(
    queries: Queries, now: bool
) -> None:
    topic = new_topic(queries.bootstrap, 5)
    with written_to(queries.bootstrap, topic):
        options: dict[str, Any] = {
            "subscribe": topic,
            "startingOffsets": "latest",
            "name": "live",
            "now": now,
        }
        stream = queries.stream(OURS, **options)
        if now:
            stream.finish()
            stream = queries.stream(OURS, **options).finish()
        else:
            stream.await_rows(1)
            stream.query.stop()
    offsets = [row[4] for row in stream.rows()]

    assert offsets[0] >= 5
    assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))


def fail_in_first_batch(queries: Queries, connector: str, options: dict[str, Any]) -> None:
    def fail(batch: DataFrame, number: int) -> None:
        raise RuntimeError(f"batch {number} of {batch} fails")

    with pytest.raises(PySparkException, match="batch 0 of"):
        queries.stream(connector, **options, each=fail).finish()


def test_a_query_whose_first_batch_failed_returns_the_rows_since_its_start(queries: Queries) -> None:
    topic = new_topic(queries.bootstrap, 5)
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "latest", "name": "failed"}
    for connector in BOTH:
        fail_in_first_batch(queries, connector, options)
    write(queries.bootstrap, topic, plain(20, first=5))

    ours, theirs = (queries.stream(connector, **options).finish() for connector in BOTH)
    assert ours.rows() == theirs.rows()
    assert [row[4] for row in ours.rows()] == list(range(5, 25))


def test_a_query_of_ours_goes_on_as_one_of_theirs(queries: Queries) -> None:
    topic = new_topic(queries.bootstrap, 5)
    queries.stream(OURS, name="returned", subscribe=topic).finish()
    queries.checkpoint(OURS, "returned").rename(queries.checkpoint(THEIRS, "returned"))
    write(queries.bootstrap, topic, plain(4, first=5))

    theirs = queries.stream(THEIRS, name="returned", subscribe=topic).finish()
    assert [row[4] for row in theirs.rows()] == [5, 6, 7, 8]
