"""Which replicas move when the replicas of a node are spread over its brokers. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence

from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState
from headrace.protocol.ids import TopicPartition


def balance(brokers: Collection[int], partitions: Sequence[PartitionState]) -> list[Move]:
    """Return moves after which the brokers of a node have equally many replicas, and lead equally many.

    Replicas move between these brokers only, and as few as possible. Numbers may differ by one. First the
    preferred leaders are spread, then the other replicas; a broker gives away partitions of all its topics in
    turn. A partition without a leader stays: nobody could copy it.
    """
    loads = _Loads(brokers, partitions)
    for of_leaders in (True, False):
        while loads.move_one(of_leaders=of_leaders):
            pass
    return loads.moves()


class _Loads:
    """The replicas of the partitions as they are after the steps so far."""

    def __init__(self, brokers: Collection[int], partitions: Sequence[PartitionState]) -> None:
        self._brokers = sorted(brokers)
        self._before = {partition.topic_partition: partition.replicas for partition in partitions}
        self._after = dict(self._before)
        self._fixed = {partition.topic_partition for partition in partitions if partition.leader is None}
        # By broker, preferred leaders and others, in the order in which they are given away.
        self._held: dict[tuple[int, bool], dict[TopicPartition, None]] = {
            (broker, leads): {} for broker in self._brokers for leads in (True, False)
        }
        for id_ in _in_turn(self._before):
            for position, broker_id in enumerate(self._before[id_]):
                if (broker_id, position == 0) in self._held:
                    self._held[broker_id, position == 0][id_] = None

    def move_one(self, *, of_leaders: bool) -> bool:
        """Move one replica to bring the numbers of leaders, or of replicas, closer; False if none can."""
        leads = {broker: len(self._held[broker, True]) for broker in self._brokers}
        holds = {broker: leads[broker] + len(self._held[broker, False]) for broker in self._brokers}
        numbers = leads if of_leaders else holds
        ordered = sorted(self._brokers, key=lambda each: (numbers[each], holds[each], each))
        for source in reversed(ordered):
            for target in ordered:
                if numbers[source] - numbers[target] < 2:
                    break
                for id_ in self._held[source, of_leaders]:
                    if target not in self._after[id_] and id_ not in self._fixed:
                        del self._held[source, of_leaders][id_]
                        self._held[target, of_leaders][id_] = None
                        moved = (target if each == source else each for each in self._after[id_])
                        self._after[id_] = tuple(moved)
                        return True
        return False

    def moves(self) -> list[Move]:
        return [
            Move(topic=id_.topic, partition=id_.partition, replicas=replicas)
            for id_, replicas in sorted(self._after.items())
            if replicas != self._before[id_]
        ]


def _in_turn(partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Return the first partition of every topic, then the second of every topic, and so on."""
    seen: Counter[str] = Counter()
    ranks = {}
    for id_ in sorted(partitions):
        ranks[id_] = seen[id_.topic]
        seen[id_.topic] += 1
    return sorted(ranks, key=lambda id_: (ranks[id_], id_))
