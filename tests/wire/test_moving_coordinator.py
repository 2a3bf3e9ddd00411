"""A coordinator that moves to another broker while a client asks it for committed offsets."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Offset

from cluster.waiting import until
from headrace.client.cluster.cluster import Cluster as ClusterClient
from headrace.client.cluster.moves import Move
from headrace.client.wire.connection import Address, Connection, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.testing import Cluster
from wire.confluent import make_topic, settings

GROUP = "readers"
OFFSETS = TopicPartition("__consumer_offsets", 0)
REQUEST = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(
            group_id=GROUP, topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        )
    ]
)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(2, {"offsets.topic.num.partitions": "1"}) as served:
        make_topic(served.bootstrap, "orders", partitions=1)
        consumer = Consumer(settings(served.bootstrap, group_id=GROUP))
        consumer.commit(offsets=[Offset("orders", 0, 0)], asynchronous=False)
        consumer.close()
        served.wait_until_in_sync()
        yield served


def stop(cluster: Cluster, coordinator: int) -> None:
    cluster.stop_broker(coordinator)


def move(cluster: Cluster, coordinator: int) -> None:
    other = 3 - coordinator
    with ClusterClient(cluster.bootstrap) as client:
        client.reassign(
            [Move(topic=OFFSETS.topic, partition=OFFSETS.partition, replicas=(other, coordinator))]
        )
        client.elect([OFFSETS])
        assert cluster.leader_of(*OFFSETS) == other


@pytest.mark.parametrize("leave", [stop, move])
def test_a_request_for_offsets_is_not_refused_because_the_coordinator_has_just_moved(
    cluster: Cluster, leave: Callable[[Cluster, int], None]
) -> None:
    """After NOT_COORDINATOR librdkafka does not repeat an OffsetFetch; after a closed connection it does."""
    coordinator = cluster.leader_of(*OFFSETS)
    host, _, port = cluster.bootstrap_of(coordinator).rpartition(":")
    codes: Counter[ErrorCode] = Counter()
    asking = threading.Thread(
        target=ask_until_closed, args=(Connection(Address(host, int(port))), codes), daemon=True
    )
    asking.start()
    until("an answer", lambda: codes)
    leave(cluster, coordinator)
    asking.join(60)
    assert not asking.is_alive()
    assert set(codes) == {ErrorCode.NONE}


def ask_until_closed(connection: Connection, codes: Counter[ErrorCode]) -> None:
    while True:
        try:
            (group,) = connection.ask(REQUEST, max_version=9).groups
        except NoAnswer:
            return
        codes[ErrorCode(group.error_code)] += 1
