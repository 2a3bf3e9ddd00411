"""Tasks that read several partitions with one request, over connections that outlive them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql.datasource import InputPartition

from cluster.waiting import until
from headrace.client.wire.connection import Connection
from headrace.protocol.message import Message
from headrace.protocol.schema.fetch import FetchRequest
from headrace.protocol.schema.list_offsets import ListOffsetsRequest
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.protocol.schema.produce import ProduceRequest
from headrace.spark import planner
from headrace.spark.errors import DataLoss
from headrace.spark.sink import write_batches
from headrace.spark.sink_options import SinkOptions
from headrace.spark.source import StreamReader, Task
from spark.readers import ALL, batch_reader, stream_reader
from spark.test_data_loss import delete_records
from spark.topics import CODECS, FOREVER, PER_CODEC, SETTINGS, plain, write
from wire.confluent import make_topic, send, sent_offsets, settings
from wire.confluent import read as consume
from wire.process import BrokerProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

Positions = list[tuple[int, int]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Message]:
    """The requests that are sent from now on."""
    found: list[Message] = []
    send_it = Connection.send

    def note(connection: Connection, request: Message, version: int) -> Any:
        found.append(request)
        return send_it(connection, request, version)

    monkeypatch.setattr(Connection, "send", note)
    return found


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that a test may restart."""
    with BrokerProcess(tmp_path / "mortal", SETTINGS) as process:
        yield process


def new_topic(bootstrap: str, *sizes: int) -> str:
    """A topic with so many records in its partitions."""
    topic = fresh_name("several")
    make_topic(bootstrap, topic, partitions=len(sizes), retention_ms=FOREVER)
    for partition, size in enumerate(sizes):
        if size:
            write(bootstrap, topic, plain(size), partition)
    return topic


def plan(reader: StreamReader) -> list[InputPartition]:
    start = reader.initialOffset()
    return reader.partitions(start, reader.latestOffset(start, ALL))


def read(reader: Any, tasks: list[InputPartition]) -> Positions:
    """The partition and offset of every row, in order."""
    return [
        (row["partition"], row["offset"])
        for task in tasks
        for batch in reader.read(task)
        for row in batch.select(["partition", "offset"]).to_pylist()
    ]


def all_of(*sizes: int) -> Positions:
    return [(partition, offset) for partition, size in enumerate(sizes) for offset in range(size)]


def test_partitions_with_few_records_are_read_with_one_request(
    broker: BrokerProcess, sent: list[Message]
) -> None:
    sizes = [3, 1, 0, 5, 2, 0, 1, 4]
    reader = stream_reader(broker.bootstrap, subscribe=new_topic(broker.bootstrap, *sizes))
    tasks = plan(reader)
    assert [len(each.ranges) for each in tasks if isinstance(each, Task)] == [6]
    rows = read(reader, tasks)
    sent.clear()
    again = read(reader, tasks)
    reader.stop()

    assert rows == again == all_of(*sizes)
    assert [type(each) for each in sent] == [FetchRequest]  # no connection, no Metadata


def test_a_batch_is_planned_with_the_log_starts_of_a_moment_ago(
    broker: BrokerProcess, sent: list[Message], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "LOG_START_MAX_AGE_S", 3600.0)
    topic = new_topic(broker.bootstrap, 2, 2)
    reader = stream_reader(broker.bootstrap, subscribe=topic)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ALL)
    reader.partitions(start, first)
    write(broker.bootstrap, topic, plain(3), 0)
    sent.clear()
    second = reader.latestOffset(first, ALL)
    tasks = reader.partitions(first, second)
    asked = [type(each) for each in sent]
    delete_records(broker.bootstrap, topic, before=4)

    assert asked == [MetadataRequest, ListOffsetsRequest]
    with pytest.raises(DataLoss, match=f"{topic}-0 begins at 4 by now"):
        read(reader, tasks)
    reader.stop()


def test_tasks_of_a_sink_share_a_producer_and_what_they_know_of_a_topic(
    broker: BrokerProcess, sent: list[Message]
) -> None:
    topic = fresh_name("shared")
    make_topic(broker.bootstrap, topic, partitions=2)
    options = SinkOptions.of({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic})
    results = []
    for number in range(3):
        rows = pa.record_batch(
            {"value": [b"%d" % number] * 10, "partition": pa.array([0, 1] * 5, pa.int32())}
        )
        sent.clear()
        results.append(write_batches(options, iter([rows])))
    admin = AdminClient(settings(broker.bootstrap))
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(timeout=20)
    rows = pa.record_batch({"value": [b"3"], "partition": pa.array([2], pa.int32())})
    grown = write_batches(options, iter([rows]))

    assert [type(each) for each in sent][:1] == [ProduceRequest]
    assert len({each.producer for each in [*results, grown]}) == 1
    found = {number: read_values(broker.bootstrap, topic, number) for number in range(3)}
    assert found == {
        0: [b"0"] * 5 + [b"1"] * 5 + [b"2"] * 5,
        1: [b"0"] * 5 + [b"1"] * 5 + [b"2"] * 5,
        2: [b"3"],
    }


def test_a_task_that_fails_leaves_its_producer_to_nobody(broker: BrokerProcess) -> None:
    topic = fresh_name("failing")
    make_topic(broker.bootstrap, topic)
    options = SinkOptions.of({"kafka.bootstrap.servers": broker.bootstrap, "topic": topic})

    def rows() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"value": [b"x"]})
        raise ValueError("no more rows")

    first = write_batches(options, iter([pa.record_batch({"value": [b"a"]})]))
    with pytest.raises(ValueError, match="no more rows"):
        write_batches(options, rows())
    last = write_batches(options, iter([pa.record_batch({"value": [b"b"]})]))

    assert last.producer != first.producer
    assert set(read_values(broker.bootstrap, topic, 0)) >= {b"a", b"b"}


def read_values(bootstrap: str, topic: str, partition: int) -> list[bytes | None]:
    return [each.value() for each in consume(bootstrap, topic, partitions=[partition])]


def test_the_number_and_the_size_of_tasks_are_as_the_user_wants(broker: BrokerProcess) -> None:
    sizes = [3] * 6
    topic = new_topic(broker.bootstrap, *sizes)
    many = stream_reader(broker.bootstrap, subscribe=topic, minPartitions="6")
    small = stream_reader(broker.bootstrap, subscribe=topic, maxRecordsPerPartition="6")
    plans = {reader: plan(reader) for reader in (many, small)}

    assert [len(each.ranges) for each in plans[many] if isinstance(each, Task)] == [1] * 6
    assert [len(each.ranges) for each in plans[small] if isinstance(each, Task)] == [2] * 3
    for reader, tasks in plans.items():
        assert read(reader, tasks) == all_of(*sizes)
        reader.stop()


def test_records_that_do_not_fit_into_one_response_come_with_the_next_ones(
    broker: BrokerProcess, sent: list[Message]
) -> None:
    topic = fresh_name("several")
    make_topic(broker.bootstrap, topic, partitions=24, retention_ms=FOREVER)
    sent_offsets(
        send(broker.bootstrap, topic, [{"value": bytes(900_000), "partition": n} for n in range(24)])
    )
    reader = stream_reader(broker.bootstrap, subscribe=topic)
    tasks = plan(reader)
    sent.clear()

    assert sorted(read(reader, tasks)) == all_of(*[1] * 24)
    assert len([each for each in sent if isinstance(each, FetchRequest)]) < 10
    reader.stop()


def test_aborted_records_of_combined_partitions_are_not_read(broker: BrokerProcess) -> None:
    reader = batch_reader(broker.bootstrap, subscribe="shapes", **{"isolation.level": "read_committed"})
    tasks = reader.partitions()

    assert len(tasks) < len(CODECS)
    assert len(read(reader, tasks)) == len(CODECS) * PER_CODEC


@pytest.mark.parametrize(
    "end", [pytest.param(BrokerProcess.stop, marks=pytest.mark.long), BrokerProcess.kill]
)
def test_a_broker_that_was_restarted_since_costs_no_row(
    mortal: BrokerProcess, end: Callable[[BrokerProcess], object]
) -> None:
    sizes = [3, 2, 4]
    topic = new_topic(mortal.bootstrap, *sizes)
    reader = stream_reader(mortal.bootstrap, subscribe=topic)
    tasks = plan(reader)
    assert read(reader, tasks) == all_of(*sizes)
    end(mortal)
    mortal.start()
    again = read(reader, tasks)
    write(mortal.bootstrap, topic, plain(2), 1)
    more = read(reader, plan(reader))
    reader.stop()

    assert again == all_of(*sizes)
    assert more == all_of(3, 4, 4)


def test_records_that_were_deleted_since_are_a_loss_of_their_partition_only(broker: BrokerProcess) -> None:
    topic = new_topic(broker.bootstrap, 6, 3)
    strict = stream_reader(broker.bootstrap, subscribe=topic)
    lenient = stream_reader(broker.bootstrap, subscribe=topic, failOnDataLoss="false")
    tasks = plan(strict)
    delete_records(broker.bootstrap, topic, before=4)

    with pytest.raises(DataLoss, match=f"{topic}-0 begins at 4 by now"):
        read(strict, tasks)
    assert read(lenient, tasks) == [(0, 4), (0, 5), *[(1, offset) for offset in range(3)]]
    strict.stop()
    lenient.stop()


def test_a_topic_that_was_recreated_since_is_not_read_in_its_place(broker: BrokerProcess) -> None:
    topic = new_topic(broker.bootstrap, 2, 2)
    other = new_topic(broker.bootstrap, 3)
    reader = stream_reader(broker.bootstrap, subscribe=f"{topic},{other}", failOnDataLoss="false")
    tasks = plan(reader)
    assert len(tasks) == 1
    assert len(read(reader, tasks)) == 7
    admin = AdminClient(settings(broker.bootstrap))
    admin.delete_topics([topic])[topic].result(timeout=20)
    until("the topic is gone", lambda: topic not in admin.list_topics(timeout=20).topics)
    make_topic(broker.bootstrap, topic, partitions=2, retention_ms=FOREVER)
    for partition in range(2):
        write(broker.bootstrap, topic, plain(5), partition)

    assert read(reader, tasks) == all_of(3)  # those of the other topic
    reader.stop()
