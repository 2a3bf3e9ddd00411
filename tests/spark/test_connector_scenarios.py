"""Scenarios from the tests of Spark's own connector that no other test has.

docs/spark.md lists which test covers which scenario. The readers are driven by hand, as Spark drives them.
"""

import json
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadMaxRows

from cluster.waiting import until
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import DataLoss, InvalidOption, SparkError
from headrace.spark.offsets import from_json
from headrace.spark.source import StreamReader
from spark.readers import ALL, batch_reader, offsets_of, stream_reader
from spark.topics import FOREVER, plain, write
from wire.confluent import make_topic
from wire.process import BrokerProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

COMMITTED: Final = {"isolation.level": "read_committed"}


def new_topic(broker: BrokerProcess, records: int = 0, name: str = "scenario", partitions: int = 1) -> str:
    topic = fresh_name(name)
    make_topic(broker.bootstrap, topic, partitions=partitions, retention_ms=FOREVER)
    if records:
        write(broker.bootstrap, topic, plain(records))
    return topic


def delete(broker: BrokerProcess, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(timeout=20)
    until("the topic is gone", lambda: topic not in admin.list_topics(timeout=20).topics)


def next_batch(reader: StreamReader, start: dict[str, Any]) -> tuple[dict[str, Any], list[InputPartition]]:
    end = reader.latestOffset(start, ALL)
    return end, reader.partitions(start, end)


# -- topics that are deleted -------------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_is_deleted_while_a_task_reads_it(broker: BrokerProcess, fails: bool) -> None:
    topic = new_topic(broker, 10)
    reader = batch_reader(broker.bootstrap, subscribe=topic, failOnDataLoss=str(fails))
    tasks = reader.partitions()
    delete(broker, topic)

    if fails:
        with pytest.raises(
            DataLoss, match=f"{topic}-0 offsets 0 to 10 are wanted, and topic {topic} does not"
        ):
            offsets_of(reader, tasks)
    else:
        assert offsets_of(reader, tasks) == []


def test_a_pattern_goes_on_with_new_topics_when_one_is_deleted(broker: BrokerProcess) -> None:
    prefix = fresh_name("family")
    first, second = (f"{prefix}-{name}" for name in ("a", "b"))
    make_topic(broker.bootstrap, first, retention_ms=FOREVER)
    write(broker.bootstrap, first, plain(3))
    options = {"subscribePattern": rf"\Q{prefix}\E-[a-z]+", "failOnDataLoss": "false"}
    reader = stream_reader(broker.bootstrap, **options)
    with closing_stream(reader):
        end, tasks = next_batch(reader, reader.initialOffset())
        assert len(offsets_of(reader, tasks)) == 3
        delete(broker, first)
        make_topic(broker.bootstrap, second, retention_ms=FOREVER)
        write(broker.bootstrap, second, plain(2))
        end, tasks = next_batch(reader, end)

        assert from_json(end) == {TopicPartition(second, 0): 2}
        assert offsets_of(reader, tasks) == [0, 1]


def closing_stream(reader: StreamReader) -> "closing[_Stopped]":
    return closing(_Stopped(reader))


class _Stopped:
    def __init__(self, reader: StreamReader) -> None:
        self.close = reader.stop


@pytest.mark.parametrize("option", ["subscribe", "assign"])
def test_a_topic_that_does_not_exist_is_named(broker: BrokerProcess, option: str) -> None:
    topic = fresh_name("absent")
    value = topic if option == "subscribe" else json.dumps({topic: [0]})

    with pytest.raises(SparkError, match=f"there is no topic '{topic}'"):
        batch_reader(broker.bootstrap, **{option: value}).partitions()


def test_a_partition_that_does_not_exist_is_named(broker: BrokerProcess) -> None:
    topic = new_topic(broker)

    with pytest.raises(InvalidOption, match=f"{topic}-3 does not exist: the topic has 1 partitions"):
        batch_reader(broker.bootstrap, assign=json.dumps({topic: [3]})).partitions()


# -- starting and ending offsets ---------------------------------------------------------------


@pytest.mark.parametrize("fails", [True, False])
def test_a_stream_begins_after_the_last_record(broker: BrokerProcess, fails: bool) -> None:
    topic = new_topic(broker, 3)
    options = {"startingOffsets": json.dumps({topic: {"0": 9}}), "failOnDataLoss": str(fails)}
    reader = stream_reader(broker.bootstrap, subscribe=topic, **options, **{"fetchOffset.numRetries": "0"})
    with closing_stream(reader):
        start = reader.initialOffset()
        if fails:
            with pytest.raises(DataLoss, match=f"{topic}-0 was read up to offset 9 and ends at 3 now"):
                next_batch(reader, start)
        else:
            end, tasks = next_batch(reader, start)
            assert offsets_of(reader, tasks) == []
            write(broker.bootstrap, topic, plain(2))
            assert offsets_of(reader, next_batch(reader, end)[1]) == [3, 4]


def test_ranges_from_the_past(broker: BrokerProcess) -> None:
    topic = new_topic(broker, 10)
    for first, last, expected in ((0, 10, range(10)), (4, 4, ()), (4, 7, range(4, 7)), (10, 10, ())):
        reader = batch_reader(
            broker.bootstrap,
            subscribe=topic,
            startingOffsets=json.dumps({topic: {"0": first}}),
            endingOffsets=json.dumps({topic: {"0": last}}),
        )
        assert offsets_of(reader, reader.partitions()) == list(expected)


@pytest.mark.parametrize(
    ("bounds", "option"),
    [
        ({"startingTimestamp": str(2**42)}, "startingTimestamp"),
        ({"startingOffsetsByTimestamp": "PER"}, "startingOffsetsByTimestamp"),
    ],
)
@pytest.mark.parametrize("streaming", [True, False])
def test_no_record_is_as_late_as_the_start(
    broker: BrokerProcess, bounds: dict[str, str], option: str, streaming: bool
) -> None:
    topic = new_topic(broker, 3)
    late = {
        name: json.dumps({topic: {"0": 2**42}}) if each == "PER" else each for name, each in bounds.items()
    }
    make = stream_reader if streaming else batch_reader

    def first_offsets(**more: str) -> list[int]:
        reader = make(broker.bootstrap, subscribe=topic, **late, **more)
        if not isinstance(reader, StreamReader):
            return offsets_of(reader, reader.partitions())
        with closing_stream(reader):
            return offsets_of(reader, next_batch(reader, reader.initialOffset())[1])

    with pytest.raises(InvalidOption, match=f"option '{option}': {topic}-0 has no record from {2**42} on"):
        first_offsets()
    assert first_offsets(startingOffsetsByTimestampStrategy="latest") == []


# -- the size of batches -----------------------------------------------------------------------


def test_a_batch_has_at_least_and_at_most_so_many_records(broker: BrokerProcess) -> None:
    topic = new_topic(broker, 3)
    limits = {"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "8", "maxTriggerDelay": "1d"}
    reader = stream_reader(broker.bootstrap, subscribe=topic, **limits)
    with closing_stream(reader):
        limit = reader.getDefaultReadLimit()
        ends: list[dict[str, Any]] = [reader.latestOffset(reader.initialOffset(), limit)]
        for written in (4, 1, 20):
            write(broker.bootstrap, topic, plain(written))
            ends.append(reader.latestOffset(ends[-1], limit))

        # 3 at once; 4 are too few; with one more they are enough; 8 of 20 are the most
        assert [from_json(each)[TopicPartition(topic, 0)] for each in ends] == [3, 3, 8, 16]
        assert from_json(reader.latestOffset(ends[-1], limit)) == {TopicPartition(topic, 0): 24}


def test_the_largest_limits_do_not_overflow(broker: BrokerProcess) -> None:
    topic = new_topic(broker, 5)
    reader = stream_reader(broker.bootstrap, subscribe=topic, maxOffsetsPerTrigger=str(2**63 - 1))
    with closing_stream(reader):
        limit = reader.getDefaultReadLimit()
        assert isinstance(limit, ReadMaxRows)
        assert limit.max_rows == 2**63 - 1
        assert from_json(reader.latestOffset(reader.initialOffset(), limit)) == {TopicPartition(topic, 0): 5}


# -- transactions ------------------------------------------------------------------------------


def transaction(broker: BrokerProcess, topic: str, values: Sequence[int], *, commits: bool | None) -> None:
    """Write in a transaction that is committed, aborted, or left open (None)."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": fresh_name("writer")})
    producer.init_transactions(20)
    producer.begin_transaction()
    for each in values:
        producer.produce(topic, b"%d" % each, partition=0)
    assert producer.flush(20) == 0
    if commits is None:
        OPEN.append(producer)
    elif commits:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)


OPEN: Final[list[Producer]] = []


def test_an_aborted_transaction_at_the_end_is_passed_over(broker: BrokerProcess) -> None:
    topic = new_topic(broker)
    transaction(broker, topic, range(3), commits=True)  # offsets 0 to 2, and a marker
    transaction(broker, topic, range(5), commits=False)  # offsets 4 to 8, and a marker
    committed = batch_reader(broker.bootstrap, subscribe=topic, **COMMITTED)
    everything = batch_reader(broker.bootstrap, subscribe=topic)

    assert offsets_of(committed, committed.partitions()) == [0, 1, 2]
    assert offsets_of(everything, everything.partitions()) == [0, 1, 2, 4, 5, 6, 7, 8]


def test_a_batch_of_nothing_but_aborted_records_is_empty_and_the_next_goes_on(broker: BrokerProcess) -> None:
    topic = new_topic(broker)
    transaction(broker, topic, range(4), commits=False)
    reader = stream_reader(broker.bootstrap, subscribe=topic, **COMMITTED)
    with closing_stream(reader):
        end = reader.latestOffset(reader.initialOffset(), ReadMaxRows(2))  # in the middle of the transaction
        assert offsets_of(reader, reader.partitions(reader.initialOffset(), end)) == []
        transaction(broker, topic, range(2), commits=True)
        stable = {TopicPartition(topic, 0): 8}
        until("the marker is there", lambda: from_json(reader.latestOffset(end, ALL)) == stable)

        assert offsets_of(reader, next_batch(reader, end)[1]) == [5, 6]


def test_an_open_transaction_is_not_read(broker: BrokerProcess) -> None:
    topic = new_topic(broker, 2)
    transaction(broker, topic, range(3), commits=None)
    committed = batch_reader(broker.bootstrap, subscribe=topic, **COMMITTED)

    assert offsets_of(committed, committed.partitions()) == [0, 1]
    OPEN.pop().abort_transaction(20)
