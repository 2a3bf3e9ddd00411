"""The readers that Spark drives, driven by hand against a real broker: what one session hardly shows."""

import pickle
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition as RdkafkaPartition
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows

from headrace.client.wire.connection import Connection, InFlight
from headrace.protocol.batch import BatchHeader, read_header
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.fetch import FetchRequest
from headrace.spark.errors import DataLoss, SparkError
from headrace.spark.offsets import from_json
from headrace.spark.source import StreamReader
from spark.readers import ALL, batch_reader, offsets_of, stream_reader
from spark.topics import FOREVER, SIZES, plain, write
from wire.confluent import make_topic
from wire.process import BrokerProcess
from wire.requests import fresh_name


@pytest.mark.parametrize("limit", [ALL, ReadMaxRows(1000)])
def test_a_batch_waits_until_there_is_enough_for_it(broker: BrokerProcess, limit: ReadLimit) -> None:
    topic = fresh_name("enough")
    make_topic(broker.bootstrap, topic, retention_ms=FOREVER)
    reader = stream_reader(broker.bootstrap, subscribe=topic, minOffsetsPerTrigger="10", maxTriggerDelay="1h")
    start = reader.initialOffset()
    write(broker.bootstrap, topic, plain(3))
    first = reader.latestOffset(start, limit)
    write(broker.bootstrap, topic, plain(9))
    second = reader.latestOffset(first, limit)
    write(broker.bootstrap, topic, plain(1))
    third = reader.latestOffset(second, limit)
    reader.stop()

    assert from_json(first) == {TopicPartition(topic, 0): 3}  # the first never waits
    assert second == first
    assert from_json(third) == {TopicPartition(topic, 0): 13}


def test_a_batch_does_not_wait_for_ever(broker: BrokerProcess) -> None:
    topic = fresh_name("late")
    make_topic(broker.bootstrap, topic, retention_ms=FOREVER)
    reader = stream_reader(broker.bootstrap, subscribe=topic, minOffsetsPerTrigger="10", maxTriggerDelay="0s")
    write(broker.bootstrap, topic, plain(3))
    first = reader.latestOffset(reader.initialOffset(), ALL)
    write(broker.bootstrap, topic, plain(1))
    second = reader.latestOffset(first, ALL)
    reader.stop()

    assert from_json(second) == {TopicPartition(topic, 0): 4}


def test_a_query_that_reads_what_is_there_does_not_read_what_comes_meanwhile(broker: BrokerProcess) -> None:
    topic = fresh_name("now")
    make_topic(broker.bootstrap, topic, retention_ms=FOREVER)
    write(broker.bootstrap, topic, plain(7))
    reader = stream_reader(broker.bootstrap, subscribe=topic)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    write(broker.bootstrap, topic, plain(5))

    end = reader.latestOffset(start, ReadMaxRows(4))
    assert from_json(end) == {TopicPartition(topic, 0): 4}
    end = reader.latestOffset(end, ReadMaxRows(4))
    assert from_json(end) == {TopicPartition(topic, 0): 7}
    assert reader.latestOffset(end, ReadMaxRows(4)) == end
    assert reader.reportLatestOffset() == {topic: {"0": 12}}
    reader.stop()


@pytest.mark.parametrize("fails", [True, False])
def test_a_topic_that_comes_later_and_has_lost_records_already_is_a_loss_as_any_other(
    broker: BrokerProcess, fails: bool
) -> None:
    topic = fresh_name("expected")
    reader = stream_reader(broker.bootstrap, subscribePattern=topic, failOnDataLoss=str(fails))
    start = reader.latestOffset(reader.initialOffset(), ALL)
    admin = make_topic(broker.bootstrap, topic, retention_ms=FOREVER)
    write(broker.bootstrap, topic, plain(10))
    admin.delete_records([RdkafkaPartition(topic, 0, 6)])[RdkafkaPartition(topic, 0)].result(timeout=20)
    end = reader.latestOffset(start, ALL)

    assert (from_json(start), from_json(end)) == ({}, {TopicPartition(topic, 0): 10})
    if fails:
        with pytest.raises(DataLoss, match="begins at 6"):
            reader.partitions(start, end)
    else:
        assert offsets_of(reader, reader.partitions(start, end)) == [6, 7, 8, 9]
    reader.stop()


@pytest.mark.parametrize("broken", range(1, 5))
def test_a_connection_that_breaks_between_two_pieces_loses_none(
    broker: BrokerProcess, monkeypatch: pytest.MonkeyPatch, broken: int
) -> None:
    """A piece has arrived when the next is asked for: it is good, whatever becomes of the question."""
    fetches = count()
    send = Connection.send

    def breaks_once(self: Connection, request: Message, version: int) -> InFlight:
        if isinstance(request, FetchRequest) and next(fetches) == broken:
            self.close()
        return send(self, request, version)

    monkeypatch.setattr(Connection, "send", breaks_once)
    options = {"subscribe": "skewed", "kafka.max.partition.fetch.bytes": "4000"}
    reader = batch_reader(broker.bootstrap, **options)

    offsets = offsets_of(reader, reader.partitions())

    assert next(fetches) > broken
    assert sorted(offsets) == sorted(offset for size in SIZES for offset in range(size))


def test_a_reader_that_knows_the_cluster_can_be_sent_to_executors(broker: BrokerProcess) -> None:
    reader = stream_reader(broker.bootstrap, subscribe="skewed", minPartitions="7")
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, ALL))
    sent: StreamReader
    sent, tasks = pickle.loads(pickle.dumps((reader, tasks)))
    reader.stop()

    assert len(tasks) == 7
    assert len(offsets_of(sent, tasks)) == sum(SIZES)


def test_a_task_with_nothing_to_read_reads_nothing(broker: BrokerProcess) -> None:
    reader = batch_reader(broker.bootstrap, subscribe="skewed")

    assert list(reader.read(InputPartition(None))) == []


def test_pieces_that_hold_less_than_one_batch_bring_everything(broker: BrokerProcess) -> None:
    smallest: dict[str, Any] = {"kafka.max.partition.fetch.bytes": "1"}
    reader = batch_reader(broker.bootstrap, assign='{"skewed": [0]}', **smallest)

    assert offsets_of(reader, reader.partitions()) == list(range(SIZES[0]))


def headers_in(data: bytearray) -> Iterator[BatchHeader]:
    position = 0
    while position < len(data):
        header = read_header(data, position)
        yield header
        position += header.size


def test_a_batch_that_the_disk_has_changed_is_named(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as own:
        make_topic(own.bootstrap, "harmed", retention_ms=FOREVER)
        for first in (0, 5):
            write(own.bootstrap, "harmed", plain(5, first=first))
        own.stop()
        (log,) = tmp_path.rglob("harmed-0/*.log")
        data = bytearray(log.read_bytes())
        last = max(header.base_offset for header in headers_in(data))  # a busy machine writes more batches
        data[-3] ^= 1
        log.write_bytes(data)
        own.start()

        reader = batch_reader(own.bootstrap, subscribe="harmed")
        with pytest.raises(SparkError, match=f"harmed-0: the batch at offset {last}: "):
            offsets_of(reader, reader.partitions())
