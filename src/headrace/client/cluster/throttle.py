"""The replication throttle of reassignments: settings that are set while partitions move."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.cluster.moves import Move
from headrace.protocol.ids import TopicPartition

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM, TO = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"


@contextmanager
def throttled(
    admin: Admin,
    brokers: Sequence[int],
    moves: Sequence[Move],
    before: Mapping[TopicPartition, Sequence[int]],
    rate: int,
) -> Iterator[None]:
    """Limit every broker to `rate` bytes a second for these moves, while the block runs.

    What serves clients, and replicas that are in sync, is not slowed down. Afterwards the settings are unset.
    """
    topics = throttled_replicas(moves, before)
    for topic, settings in topics.items():
        admin.alter_topic_configs(topic, sets=settings)
    for broker_id in brokers:
        admin.alter_broker_configs(broker_id, sets=dict.fromkeys(RATES, str(rate)))
    try:
        yield
    finally:
        for broker_id in brokers:
            admin.alter_broker_configs(broker_id, sets={}, unsets=RATES)
        for topic in topics:
            admin.alter_topic_configs(topic, sets={}, unsets=(FROM, TO))


def throttled_replicas(
    moves: Sequence[Move], before: Mapping[TopicPartition, Sequence[int]]
) -> dict[str, dict[str, str]]:
    """Return the settings of each topic: existing replicas as leaders, new ones as followers. Pure.

    A move of orders-0 from 1,2 to 2,3 gives 0:1,0:2 for leaders and 0:3 for followers.
    """
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: {FROM: [], TO: []})
    for move in moves:
        there = before[move.topic_partition]
        new = [each for each in move.replicas if each not in there]
        if new:
            found[move.topic][FROM] += [f"{move.partition}:{each}" for each in there]
            found[move.topic][TO] += [f"{move.partition}:{each}" for each in new]
    return {
        topic: {name: ",".join(replicas) for name, replicas in settings.items()}
        for topic, settings in found.items()
    }
