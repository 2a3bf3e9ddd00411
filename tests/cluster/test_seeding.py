"""A node grows from one broker to two: partitions move by links to their segments, under load."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from cli.command import Command
from cluster.brokers import BrokerProcess
from cluster.coordinators import Embedded
from cluster.waiting import until
from headrace.protocol.between_brokers.broker_metrics import BrokerMetricsRequest
from wire.confluent import make_topic, read, settings
from wire.raw import RawClient

TOPIC: Final = "orders"
PARTITIONS: Final = 4
SEGMENT_BYTES: Final = 8 * 2**20
LARGE: Final = b"v" * 50_000
SMALL: Final = b"v" * 1_000
STORED: Final = 4_200  # large records before the move: some 200 MB
SETTINGS: Final = {
    "headrace.node": "n",
    "offsets.topic.replication.factor": "1",
    "auto.create.topics.enable": "false",
    "leader.imbalance.check.interval.seconds": "1",
}


class Writer:
    """Writes numbered records to every partition with acks=all, until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(settings(bootstrap, acks="all", enable_idempotence=True, linger_ms=5))
        self.sent = dict.fromkeys(range(PARTITIONS), 0)
        self.acknowledged = dict.fromkeys(range(PARTITIONS), 0)
        self.errors: list[Any] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._go_on)

    def write(self, partition: int, content: bytes) -> None:
        value = b"%d:%s" % (self.sent[partition], content)
        self.sent[partition] += 1
        while True:
            try:
                self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._delivered)
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acknowledged[message.partition()] += 1

    def fill(self) -> None:
        for number in range(STORED):
            self.write(number % PARTITIONS, LARGE)
            self._producer.poll(0)
        assert self._producer.flush(60) == 0

    def start(self) -> None:
        self._thread.start()

    def _go_on(self) -> None:
        while not self._stopped.is_set():
            for partition in range(PARTITIONS):
                self.write(partition, SMALL)
            self._producer.poll(0.02)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        assert self._producer.flush(60) == 0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[list[BrokerProcess]]:
    """Two brokers of one node, of which the first runs."""
    with Embedded(tmp_path) as coordinator:
        brokers = [BrokerProcess(each, tmp_path, coordinator.address, SETTINGS) for each in (1, 2)]
        try:
            brokers[0].start()
            yield brokers
        finally:
            for broker in brokers:
                broker.kill()


def replicated_bytes(broker: BrokerProcess) -> float:
    """Return how many bytes of records of the topic the broker has fetched from leaders."""
    name = "kafka_server_brokertopicmetrics_replicationbytesin"
    with RawClient(broker.bootstrap) as client:
        answer = client.ask(BrokerMetricsRequest(prefixes=[name]), 0)
    samples = [sample for family in answer.families for sample in family.samples]
    return float(next(sample.value for sample in samples if sample.labels == [TOPIC]))


def segments(broker: BrokerProcess, partition: int) -> list[Path]:
    return sorted((broker.log_dir / f"{TOPIC}-{partition}").glob("*.log"))


def test_partitions_move_to_a_second_broker_of_the_node_without_being_copied(
    node: list[BrokerProcess],
) -> None:
    first, second = node
    make_topic(first.bootstrap, TOPIC, partitions=PARTITIONS, segment_bytes=str(SEGMENT_BYTES))
    writer = Writer(first.bootstrap)
    writer.fill()
    stored = [path.stat() for each in range(PARTITIONS) for path in segments(first, each)]
    inodes = {each.st_ino for each in stored}
    before = dict(writer.acknowledged)
    second.start()
    writer.start()
    try:
        balanced = Command(first.bootstrap)("cluster", "balance", "--node", "n", "--wait")
        assert balanced.status == 0, balanced
        until("records are written after the move", lambda: _has_grown(writer, before))
    finally:
        writer.stop()
    assert writer.errors == []

    moved = [each for each in range(PARTITIONS) if segments(second, each)]
    assert len(moved) == PARTITIONS // 2
    found = [path for each in moved for path in segments(second, each)]
    linked = [path for path in found if path.stat().st_ino in inodes]
    size = sum(path.stat().st_size for path in linked)
    assert size > 0.4 * sum(each.st_size for each in stored), (
        "half of the files have only changed their place"
    )
    fetched = replicated_bytes(second)
    print(f"{size} bytes were linked, {fetched:.0f} fetched")  # noqa: T201  for people
    assert fetched <= sum(path.stat().st_size for path in found) - size, "nothing that was linked was fetched"
    until(
        "the first broker has deleted what has moved",
        lambda: all(not segments(first, each) for each in moved),
    )
    until("the links are gone", lambda: all(path.stat().st_nlink == 1 for path in linked))
    _check_records(f"{first.bootstrap},{second.bootstrap}", writer)
    again = Command(first.bootstrap)("cluster", "balance", "--node", "n")
    assert "spread evenly" in again.text


def _has_grown(writer: Writer, before: dict[int, int]) -> bool:
    return all(writer.acknowledged[each] > before[each] + 5 for each in range(PARTITIONS))


def _check_records(bootstrap: str, writer: Writer) -> None:
    """Every acknowledged record is there once, in order."""
    for partition in range(PARTITIONS):
        messages = read(bootstrap, TOPIC, partitions=[partition])
        numbers = [int(message.value().partition(b":")[0]) for message in messages]
        assert numbers == list(range(writer.sent[partition])), partition
