"""The driver of the exactly-once sink dies at every request that it makes, and the batch is repeated."""

import time
from contextlib import closing
from functools import partial
from itertools import count
from typing import Final

import pytest

from cluster.waiting import until
from compat.kafka_tools.server import KafkaServer
from headrace.protocol.batch import HEADER_SIZE
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch
from headrace.spark.batch import Batch
from headrace.spark.errors import SparkError
from headrace.spark.producer import BatchProducer, EncodedBatch
from headrace.spark.sink_options import SinkOptions
from headrace.spark.staging import Stage, StagedRecords
from headrace.spark.transaction import Fenced, Transaction
from headrace.spark.transactional_sink import write_transaction
from headrace.tables.reader.cluster import ClusterConnections
from spark.crashes import MOST_REQUESTS, dies
from wire.confluent import make_topic, read
from wire.process import BrokerProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

PARTITIONS: Final = 2
NOW_MS: Final = int(time.time() * 1000)  # records of earlier years would exceed retention.ms
QUERY: Final = "b7d0"


class Sink:
    """Batches of two tasks for one topic, written with one transactional id."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.topic = fresh_name("once")
        self.name = fresh_name("sink")
        make_topic(bootstrap, self.topic, partitions=PARTITIONS)
        self.options = SinkOptions.of(
            {"kafka.bootstrap.servers": bootstrap, "topic": self.topic, "exactlyOnce": "true"}
        )

    def stage(self, batch: int, *, spills: bool = False) -> list[StagedRecords]:
        """Records with the number of the batch, of two tasks for both partitions."""
        return [self._task(task, batch, max_bytes=0 if spills else 1 << 20) for task in range(2)]

    def _task(self, task: int, batch: int, *, max_bytes: int) -> StagedRecords:
        with (
            closing(ClusterConnections(self.bootstrap)) as cluster,
            closing(Stage(cluster, f"{self.name}-staging", task=task, max_bytes=max_bytes)) as stage,
        ):
            for index in range(PARTITIONS):
                body = encode_batch([Record(None, b"%d.%d" % (batch, task))])[HEADER_SIZE:]
                stage.add(EncodedBatch(TopicPartition(self.topic, index), body, 1, NOW_MS))
            return stage.finish()

    def write(self, batch: int, staged: list[StagedRecords]) -> bool:
        return write_transaction(self.options, self.name, staged, Batch(QUERY, batch))

    def visible(self) -> list[list[bytes | None]]:
        """The values of both partitions, as a consumer with read_committed sees them."""
        records = read(
            self.bootstrap, self.topic, partitions=range(PARTITIONS), isolation_level="read_committed"
        )
        return [
            [each.value() for each in records if each.partition() == index] for index in range(PARTITIONS)
        ]


def values(*batches: int) -> list[list[bytes]]:
    return [[b"%d.%d" % (batch, task) for batch in batches for task in range(2)]] * PARTITIONS


@pytest.fixture(params=["headrace", "kafka"])
def sink(request: pytest.FixtureRequest) -> Sink:
    server: BrokerProcess | KafkaServer = request.getfixturevalue(
        "broker" if request.param == "headrace" else "kafka"
    )
    return Sink(server.bootstrap)


@pytest.mark.parametrize(
    ("sink", "spills"),
    [
        pytest.param("headrace", False, id="headrace, in messages"),
        pytest.param("headrace", True, id="headrace, in the staging topic"),
        pytest.param("kafka", False, id="kafka, in messages", marks=pytest.mark.long),
        pytest.param("kafka", True, id="kafka, in the staging topic", marks=pytest.mark.long),
    ],
    indirect=["sink"],
)
@pytest.mark.parametrize("answered", [False, True], ids=["before a request", "after its answer"])
def test_a_driver_that_dies_at_any_request_neither_loses_nor_repeats_a_batch(
    sink: Sink, answered: bool, spills: bool
) -> None:
    first = sink.stage(0, spills=spills)
    assert sink.write(0, first)
    deaths = 0
    for at in count():
        staged = sink.stage(at + 1, spills=spills)
        died = dies(partial(sink.write, at + 1, staged), at, answered=answered)
        again = sink.write(at + 1, staged)
        if not died:
            assert not again, "the batch was committed without a crash"
            break
        deaths += 1
        assert deaths < MOST_REQUESTS

    assert deaths > 8, "every step of a transaction is a request"
    assert sink.visible() == values(*range(at + 2))


def test_nothing_is_visible_before_the_commit(sink: Sink) -> None:
    staged = sink.stage(0, spills=True)

    assert sink.visible() == [[], []]
    assert sink.write(0, staged)
    assert sink.visible() == values(0)


def test_a_batch_that_is_repeated_is_skipped_and_a_new_query_begins_again(sink: Sink) -> None:
    assert sink.write(4, sink.stage(4))
    assert not sink.write(4, sink.stage(4))
    assert not sink.write(3, sink.stage(3)), "batches are committed in order"
    assert write_transaction(sink.options, sink.name, sink.stage(0), Batch("another query", 0))

    assert sink.visible() == values(4, 0)


def test_a_driver_that_was_replaced_writes_nothing_more(sink: Sink) -> None:
    staged = sink.stage(7)
    with closing(ClusterConnections(sink.bootstrap)) as cluster:
        paused = Transaction(cluster, sink.name, 60_000)
        paused.add_partitions([TopicPartition(sink.topic, 0)])
        late = BatchProducer(cluster, producer=paused.producer)
        assert sink.write(7, staged)

        late.add(*staged[0].inline[0])
        with closing(late), pytest.raises(SparkError):
            late.flush()
        with pytest.raises(Fenced):
            paused.end(committed=True)

    assert sink.visible() == values(7)


def test_the_records_of_an_aborted_write_do_not_delay_readers(sink: Sink) -> None:
    """The broker refuses one partition after another was written: the transaction is aborted."""
    staged = sink.stage(0)
    nowhere = TopicPartition(fresh_name("nowhere"), 0)
    staged[1].inline.append(EncodedBatch(nowhere, staged[0].inline[0].body, 1, NOW_MS))

    with pytest.raises(SparkError):
        write_transaction(
            SinkOptions.of(
                {"kafka.bootstrap.servers": sink.bootstrap, "topic": sink.topic, "exactlyOnce": "true"}
                | {"kafka.delivery.timeout.ms": "200"}
            ),
            sink.name,
            staged,
            Batch(QUERY, 0),
        )
    partition = TopicPartition(sink.topic, 0)
    with closing(ClusterConnections(sink.bootstrap)) as cluster:
        # Kafka answers EndTxn before it has written the markers.
        until(
            "the last stable offset is the end of the log",
            lambda: (
                cluster.offsets({partition: -1}, read_committed=True)
                == cluster.offsets({partition: -1}, read_committed=False)
            ),
            timeout_s=30,  # the coordinator would abort it by itself after the timeout of the transaction
        )
    assert sink.visible() == [[], []]
