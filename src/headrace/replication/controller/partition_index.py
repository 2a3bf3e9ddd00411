"""An index of partitions by broker: after an event of a broker, only its partitions are visited. Pure."""

from collections.abc import Collection

from headrace.protocol.ids import TopicPartition
from headrace.replication.election import NO_LEADER, Partition


class PartitionIndex:
    """The partitions of each broker, and those that are being reassigned, in the order of their creation."""

    __slots__ = ("_by_broker", "moving")

    def __init__(self) -> None:
        self._by_broker: dict[int, dict[TopicPartition, None]] = {}
        self.moving: dict[TopicPartition, None] = {}

    def on(self, broker_id: int) -> Collection[TopicPartition]:
        return self._by_broker.get(broker_id, {}).keys()

    def add(self, key: TopicPartition, partition: Partition) -> None:
        for broker_id in _concerned(partition):
            self._by_broker.setdefault(broker_id, {})[key] = None
        if partition.adding or partition.removing:
            self.moving[key] = None

    def discard(self, key: TopicPartition, partition: Partition) -> None:
        for broker_id in _concerned(partition):
            self._by_broker.get(broker_id, {}).pop(key, None)
        self.moving.pop(key, None)

    def replace(self, key: TopicPartition, before: Partition | None, after: Partition) -> None:
        if before is not None:
            if placement(before) == placement(after) and _concerned(before) == _concerned(after):
                return
            self.discard(key, before)
        self.add(key, after)


def _concerned(partition: Partition) -> set[int]:
    """Return the brokers whose events may change the partition.

    These are its replicas. A state from ZooKeeper may name others: a controller may have been interrupted
    between writing the state and writing the assignment.
    """
    named = {*partition.replicas, *partition.isr, *partition.elr, partition.leader}
    named.discard(NO_LEADER)
    return named


def placement(partition: Partition) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    return partition.replicas, partition.adding, partition.removing
