"""A broker that stops cleanly, seen by a client that asks it for committed offsets all the time."""

import threading
from collections import Counter

from confluent_kafka import Consumer, TopicPartition

from headrace.client.wire.connection import Address, Connection, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.testing import Cluster
from wire.confluent import make_topic, settings

GROUP = "readers"
REQUEST = OffsetFetchRequest(
    groups=[
        OffsetFetchRequestGroup(
            group_id=GROUP, topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        )
    ]
)


def test_offsets_are_never_refused_because_the_coordinator_has_moved_away_from_a_stopping_broker() -> None:
    """After NOT_COORDINATOR librdkafka does not repeat an OffsetFetch; after a closed connection it does."""
    with Cluster(2, {"offsets.topic.num.partitions": "1"}) as cluster:
        make_topic(cluster.bootstrap, "orders", partitions=1)
        commit(cluster.bootstrap)
        cluster.wait_until_in_sync()
        coordinator = cluster.leader_of("__consumer_offsets")
        host, _, port = cluster.bootstrap_of(coordinator).rpartition(":")
        connection = Connection(Address(host, int(port)))
        codes: Counter[ErrorCode] = Counter()
        asking = threading.Thread(target=ask_until_closed, args=(connection, codes))
        asking.start()
        cluster.stop_broker(coordinator)
        asking.join()
    assert set(codes) == {ErrorCode.NONE}


def ask_until_closed(connection: Connection, codes: Counter[ErrorCode]) -> None:
    while True:
        try:
            (group,) = connection.ask(REQUEST, max_version=9).groups
        except NoAnswer:
            return
        codes[ErrorCode(group.error_code)] += 1


def commit(bootstrap: str) -> None:
    consumer = Consumer(settings(bootstrap, group_id=GROUP))
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()
