"""With kafka.client.rack a task reads from the replica in its rack (KIP-392), otherwise from the leader."""

import os
import signal
from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.client.wire.connection import Address, Connection
from headrace.protocol.ids import TopicPartition
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.fetcher import Fetcher, FetchOptions
from headrace.tables.reader.offsets import Range
from support.process import ClusterProcess
from wire.confluent import send, sent_offsets, settings

PARTITION: Final = TopicPartition("near", 0)
RECORDS: Final = 2000
LEADER, FOLLOWER = 1, 2
SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Recording(ClusterConnections):
    """Remembers the brokers that record batches are fetched from."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.asked: list[int] = []

    def connect(self, address: Address) -> Connection:
        self.asked.append(next(broker for broker, at in self._addresses.items() if at == address))
        return super().connect(address)


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcess]:
    """Two brokers in two racks, and a topic that the first of them leads."""
    with ClusterProcess(
        tmp_path_factory.mktemp("racks"), 2, {"replica.selector.class": SELECTOR}, ["--racks=a,b"]
    ) as process:
        admin = AdminClient(settings(process.bootstrap))
        topic = NewTopic(PARTITION.topic, 1, replica_assignment=[[LEADER, FOLLOWER]])
        admin.create_topics([topic])[PARTITION.topic].result(timeout=30)
        messages = [{"value": b"%d" % n, "partition": 0} for n in range(RECORDS)]
        sent_offsets(send(process.bootstrap, PARTITION.topic, messages, batch_num_messages=50))
        yield process


def fetched(cluster: Recording, rack: str, kill: int | None = None) -> int:
    """The number of records in the batches; the process `kill` is killed after the first of them."""
    found = 0
    options = FetchOptions(rack=rack, max_bytes=2000)
    for _, header in Fetcher(cluster, Range(PARTITION, 0, RECORDS), options=options):
        if not found and kill is not None:
            os.kill(kill, signal.SIGKILL)
        found += header.records_count
    return found


def test_a_task_reads_from_the_replica_in_its_rack(cluster: ClusterProcess) -> None:
    for rack, asked in {"": [LEADER], "a": [LEADER], "nowhere": [LEADER], "b": [LEADER, FOLLOWER]}.items():
        with closing(Recording(cluster.bootstrap)) as recording:
            assert fetched(recording, rack) == RECORDS
            assert recording.asked == asked

    with closing(Recording(cluster.bootstrap)) as recording:
        assert fetched(recording, "b", kill=cluster.members[f"broker-{FOLLOWER}"]) == RECORDS
        assert set(recording.asked[2:]) == {LEADER}  # the rest comes from the leader
