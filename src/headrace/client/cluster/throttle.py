"""The replication throttle of reassignments: settings that are set while partitions move."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.cluster.moves import Move
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import BROKER, TOPIC, Node, describe_configs_request
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM, TO = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
_TOPICS_AT_A_TIME: Final = 1_000
_DEFAULT: Final = 5  # the source of a setting that nobody has set


@contextmanager
def throttled(
    admin: Admin,
    brokers: Sequence[int],
    moves: Sequence[Move],
    before: Mapping[TopicPartition, Sequence[int]],
    rate: int,
) -> Iterator[None]:
    """Limit every broker to `rate` bytes a second for these moves, while the block runs."""
    topics = set_throttle(admin, brokers, moves, before, rate)
    try:
        yield
    finally:
        lift_throttle(admin, brokers, topics)


def set_throttle(
    admin: Admin,
    brokers: Sequence[int],
    moves: Sequence[Move],
    before: Mapping[TopicPartition, Sequence[int]],
    rate: int,
) -> list[str]:
    """Limit every broker to `rate` bytes a second for these moves; return the topics that are throttled.

    What serves clients, and replicas that are in sync, is not slowed down. Replicas that are throttled
    already, by a move that is in progress, stay so.
    """
    topics = throttled_replicas(moves, before)
    for topic, settings in topics.items():
        present = {each.name: each.value or "" for each in admin.topic_configs(topic)}
        sets = {name: merged(present.get(name, ""), replicas) for name, replicas in settings.items()}
        admin.alter_topic_configs(topic, sets=sets)
    for broker_id in brokers:
        admin.alter_broker_configs(broker_id, sets=dict.fromkeys(RATES, str(rate)))
    return list(topics)


def lift_throttle(admin: Admin, brokers: Iterable[int], topics: Iterable[str]) -> None:
    """Unset the throttle of these brokers and topics."""
    for broker_id in brokers:
        admin.alter_broker_configs(broker_id, sets={}, unsets=RATES)
    for topic in topics:
        admin.alter_topic_configs(topic, sets={}, unsets=(FROM, TO))


def read_rates(brokers: Brokers, nodes: Iterable[Node]) -> dict[int, int]:
    """Return the throttles of those nodes that have one, in bytes a second: the lower of the two rates."""
    reads = {node: partial(_ask_rates, node.id) for node in nodes}
    answers = {node.id: answer for node, answer in brokers.each(reads).items()}
    rates = {
        broker_id: [int(value) for value in _values(answer).get(str(broker_id), {}).values()]
        for broker_id, answer in sorted(answers.items())
        if not isinstance(answer, NoAnswer)
    }
    return {broker_id: min(known) for broker_id, known in rates.items() if known}


def read_throttled_topics(brokers: Brokers) -> list[str]:
    """Return the topics with throttled replicas."""
    names = [each.name for each in brokers.metadata().topics if each.name]
    found: list[str] = []
    for start in range(0, len(names), _TOPICS_AT_A_TIME):
        request = describe_configs_request(TOPIC, names[start : start + _TOPICS_AT_A_TIME], (FROM, TO))
        found += [name for name, values in _values(brokers.any(request)).items() if values]
    return found


def _ask_rates(broker_id: int, connection: Connection) -> DescribeConfigsResponse:
    found: DescribeConfigsResponse = connection.ask(describe_configs_request(BROKER, [str(broker_id)], RATES))
    return found


def _values(answer: DescribeConfigsResponse) -> dict[str, dict[str, str]]:
    """Return the settings that somebody has set, of each resource that may be described."""
    return {
        result.resource_name: {
            each.name: each.value for each in result.configs if each.value and each.config_source != _DEFAULT
        }
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


def merged(present: str, more: str) -> str:
    """Return two lists of throttled replicas as one; `*` is all. Pure."""
    parts = [*present.split(","), *more.split(",")]
    return "*" if "*" in parts else ",".join(dict.fromkeys(each for each in parts if each))


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
