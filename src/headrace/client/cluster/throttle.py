"""The replication throttle of reassignments: settings of topics and brokers while partitions move.

What serves clients, and replicas that are in sync, is not slowed down.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from headrace.client.cluster.moves import Move
from headrace.client.errors import ClientError, Unreachable, raise_for
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import (
    APPEND,
    BROKER,
    DELETE,
    EVERY_BROKER,
    SET,
    SUBTRACT,
    TOPIC,
    ConfigChange,
    Node,
    alter_configs_request,
    describe_configs_request,
    nodes_of,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse
from headrace.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsResponse

RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FROM, TO = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
_ALL: Final = "*"
_AT_A_TIME: Final = 500  # topics of a request
_ANSWER_S: Final = 35.0
_ONE_BROKER, _ALL_BROKERS, _DEFAULT = 2, 3, 5  # where settings come from; a default was set by nobody

Settings = Mapping[str, Mapping[str, str]]  # of each topic or broker, by its name


class ReplicationThrottle:
    """The throttle of some moves: `rate` bytes a second on every broker."""

    def __init__(
        self,
        brokers: Brokers,
        moves: Sequence[Move],
        before: Mapping[TopicPartition, Sequence[int]],
        rate: int,
    ) -> None:
        self._brokers = brokers
        self._replicas = throttled_replicas(moves, before)
        self._rate = rate
        self._rates_before: Settings = {}

    def set(self) -> None:
        """Throttle the moves, or nothing if that fails; replicas that are throttled already stay so."""
        if not self._replicas:
            return  # nothing is copied
        nodes = self._brokers.nodes()
        self._rates_before = _read_rates(self._brokers, nodes, _ONE_BROKER)
        try:
            _alter_topics(self._brokers, self._changes(APPEND))
            for node in nodes:
                _alter_broker(self._brokers, node, [(name, SET, str(self._rate)) for name in RATES])
        except ClientError:
            with suppress(ClientError):
                self.lift()
            raise

    def lift(self) -> None:
        """Undo it; the rates stay if other replicas are throttled: somebody else moves them."""
        if not self._replicas:
            return
        _alter_topics(self._brokers, self._changes(SUBTRACT))
        left = read_throttled_replicas(self._brokers, self._replicas)
        empty = [topic for topic in self._replicas if left.get(topic) == {}]
        _alter_topics(self._brokers, {topic: _deleted((FROM, TO)) for topic in empty})
        others = read_throttled_topics(self._brokers)
        for node in self._brokers.nodes():
            before = self._rates_before.get(str(node.id), {})
            if before:
                _alter_broker(self._brokers, node, [(name, SET, rate) for name, rate in before.items()])
            elif not others:
                _alter_broker(self._brokers, node, _deleted(RATES))

    def _changes(self, operation: int) -> dict[str, list[ConfigChange]]:
        """Return the changes of topics; one whose replicas are all throttled needs none."""
        present = read_throttled_replicas(self._brokers, self._replicas)
        return {
            topic: [
                (name, operation, replicas)
                for name, replicas in settings.items()
                if present.get(topic, {}).get(name) != _ALL
            ]
            for topic, settings in self._replicas.items()
        }


@contextmanager
def throttled(throttle: ReplicationThrottle) -> Iterator[None]:
    """Throttle moves while the block runs."""
    throttle.set()
    try:
        yield
    finally:
        throttle.lift()


def remove_throttle(brokers: Brokers) -> None:
    """Unset the rates of all brokers and the throttled replicas of all topics, whoever has set them.

    Unreachable names brokers whose rates may remain; everything else is unset then, too.
    """
    metadata = brokers.metadata()
    nodes = nodes_of(metadata)
    for_all = _read_rates(brokers, nodes, _ALL_BROKERS)
    _alter_topics(brokers, {topic: _deleted((FROM, TO)) for topic in read_throttled_topics(brokers)})
    if for_all:
        _alter(brokers, None, BROKER, {EVERY_BROKER: _deleted(RATES)})
    known = {each for topic in metadata.topics for part in topic.partitions for each in part.replica_nodes}
    left = known - {node.id for node in nodes}
    for node in nodes:
        try:
            _alter_broker(brokers, node, _deleted(RATES))
        except Unreachable:
            left.add(node.id)
    if left:
        names = ", ".join(map(str, sorted(left)))
        raise Unreachable(f"broker {names} does not answer: if it has a throttle, that remains")


def read_rates(brokers: Brokers, nodes: Iterable[Node]) -> dict[int, int]:
    """Return the throttles of those nodes that have one, in bytes a second: the lower of the two rates."""
    found = _read_rates(brokers, nodes)
    return {int(broker): min(map(int, rates.values())) for broker, rates in sorted(found.items()) if rates}


def read_throttled_topics(brokers: Brokers) -> list[str]:
    """Return the topics with throttled replicas."""
    names = [each.name for each in brokers.metadata().topics if each.name]
    return [topic for topic, settings in read_throttled_replicas(brokers, names).items() if settings]


def read_throttled_replicas(brokers: Brokers, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the throttled replicas of each topic, by the two settings."""
    names, found = list(topics), dict[str, dict[str, str]]()
    for start in range(0, len(names), _AT_A_TIME):
        found |= _values(
            brokers.any(describe_configs_request(TOPIC, names[start : start + _AT_A_TIME], (FROM, TO)))
        )
    return found


def _read_rates(brokers: Brokers, nodes: Iterable[Node], source: int | None = None) -> Settings:
    """Return the rates of nodes that answer and have some, by their ids; with `source` only such ones."""
    reads = {node: partial(_ask_rates, node.id) for node in nodes}
    found: dict[str, dict[str, str]] = {}
    for answer in brokers.each(reads).values():
        if not isinstance(answer, NoAnswer):
            found |= _values(answer, source)
    return {broker: rates for broker, rates in found.items() if rates}


def _ask_rates(broker_id: int, connection: Connection) -> DescribeConfigsResponse:
    found: DescribeConfigsResponse = connection.ask(describe_configs_request(BROKER, [str(broker_id)], RATES))
    return found


def _values(answer: DescribeConfigsResponse, source: int | None = None) -> dict[str, dict[str, str]]:
    """Return the settings that somebody has set, of each resource that may be described."""
    return {
        result.resource_name: {
            each.name: each.value
            for each in result.configs
            if each.value and each.config_source != _DEFAULT and source in {None, each.config_source}
        }
        for result in answer.results
        if result.error_code == ErrorCode.NONE
    }


def _deleted(names: Iterable[str]) -> list[ConfigChange]:
    return [(name, DELETE, None) for name in names]


def _alter_topics(brokers: Brokers, changes: Mapping[str, Sequence[ConfigChange]]) -> None:
    topics = [(topic, some) for topic, some in changes.items() if some]
    for start in range(0, len(topics), _AT_A_TIME):
        _alter(brokers, None, TOPIC, dict(topics[start : start + _AT_A_TIME]))


def _alter_broker(brokers: Brokers, node: Node, changes: Sequence[ConfigChange]) -> None:
    try:
        _alter(brokers, node, BROKER, {str(node.id): changes})
    except NoAnswer as error:
        raise Unreachable(f"broker {node.id} does not answer: {error}") from error


def _alter(
    brokers: Brokers, node: Node | None, resource_type: int, changes: Mapping[str, Sequence[ConfigChange]]
) -> None:
    request = alter_configs_request(resource_type, changes)
    answer: IncrementalAlterConfigsResponse = (
        brokers.any(request, answer_s=_ANSWER_S)
        if node is None
        else brokers.at(node.address, request, answer_s=_ANSWER_S)
    )
    for each in answer.responses:
        if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # it was deleted meanwhile
            what = each.resource_name if resource_type == TOPIC else f"broker {each.resource_name}"
            raise_for(each.error_code, each.error_message, what)


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
