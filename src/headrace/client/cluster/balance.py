"""Which replicas move when the replicas of a node are spread over its brokers. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState
from headrace.protocol.ids import TopicPartition


def balance(brokers: Collection[int], partitions: Sequence[PartitionState]) -> list[Move]:
    """Return moves after which the brokers of a node have equally many replicas, and lead equally many.

    Replicas move between these brokers only, and as few as possible. Numbers may differ by one. First the
    preferred leaders are spread, then the other replicas. Of the partitions of the fullest broker, one of the
    topic that the other broker has least of moves. A partition without a leader stays: nobody could copy it.
    """
    loads = _Loads(brokers, partitions)
    while (step := loads.next_leader()) is not None:
        loads.apply(step)
    while (step := loads.next_follower()) is not None:
        loads.apply(step)
    return loads.moves()


class _Step(NamedTuple):
    """One replica moves from one broker to another."""

    partition: TopicPartition
    source: int
    target: int


class _Loads:
    """The replicas of the partitions as they are after the steps so far."""

    def __init__(self, brokers: Collection[int], partitions: Sequence[PartitionState]) -> None:
        self._brokers = sorted(brokers)
        self._before = {each.topic_partition: each.replicas for each in partitions}
        self._after = dict(self._before)
        self._fixed = {each.topic_partition for each in partitions if each.leader is None}
        self._held: dict[int, set[TopicPartition]] = {each: set() for each in self._brokers}
        self._leads: Counter[int] = Counter()
        self._topics: Counter[tuple[int, str]] = Counter()  # replicas by broker and topic
        for id_, replicas in self._before.items():
            for broker_id in replicas:
                self._count(id_, broker_id, 1)

    def _count(self, id_: TopicPartition, broker_id: int, change: int) -> None:
        """Count a replica on a broker, or no longer."""
        if broker_id not in self._held:
            return
        (self._held[broker_id].add if change > 0 else self._held[broker_id].discard)(id_)
        self._leads[broker_id] += change * (self._after[id_][0] == broker_id)
        self._topics[broker_id, id_.topic] += change

    def next_leader(self) -> _Step | None:
        """Return a step that brings the numbers of preferred leaders closer to each other, or None."""
        return self._next({each: self._leads[each] for each in self._brokers}, leaders=True)

    def next_follower(self) -> _Step | None:
        """Return a step that brings the numbers of replicas closer to each other, or None."""
        return self._next({each: len(self._held[each]) for each in self._brokers}, leaders=False)

    def _next(self, numbers: dict[int, int], *, leaders: bool) -> _Step | None:
        by_number = sorted(self._brokers, key=lambda each: (numbers[each], len(self._held[each]), each))
        for source in reversed(by_number):
            for target in by_number:
                if numbers[source] - numbers[target] < 2:
                    break
                candidates = list(self._movable(source, target, leaders=leaders))
                if candidates:
                    return _Step(
                        min(candidates, key=lambda id_: self._cost(id_, source, target)), source, target
                    )
        return None

    def _movable(self, source: int, target: int, *, leaders: bool) -> Iterator[TopicPartition]:
        for id_ in self._held[source]:
            is_leader = self._after[id_][0] == source
            if is_leader == leaders and target not in self._after[id_] and id_ not in self._fixed:
                yield id_

    def _cost(self, id_: TopicPartition, source: int, target: int) -> tuple[int, TopicPartition]:
        return self._topics[target, id_.topic] - self._topics[source, id_.topic], id_

    def apply(self, step: _Step) -> None:
        id_, source, target = step
        self._count(id_, source, -1)
        self._after[id_] = tuple(target if each == source else each for each in self._after[id_])
        self._count(id_, target, 1)

    def moves(self) -> list[Move]:
        return [
            Move(topic=id_.topic, partition=id_.partition, replicas=replicas)
            for id_, replicas in sorted(self._after.items())
            if replicas != self._before[id_]
        ]
