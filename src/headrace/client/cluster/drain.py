"""Where the replicas of a broker move when it is drained. Pure."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState
from headrace.client.errors import ClientError

Racks = Mapping[int, str | None]
"""The rack of each live broker."""


def drain(broker_id: int, partitions: Sequence[PartitionState], brokers: Racks) -> list[Move]:
    """Return moves after which no replica is on `broker_id`; other replicas stay where they are.

    A rack without a replica of the partition is preferred, then the broker with the fewest replicas. The new
    replica takes the old one's place in the list, so preferred leaders are spread as well. ClientError if a
    partition has no leader to copy from, or no other broker is alive.
    """
    loads = _Loads(partitions, {each: rack for each, rack in brokers.items() if each != broker_id})
    moves = []
    for partition in sorted(partitions, key=lambda each: each.topic_partition):
        if broker_id in partition.replicas:
            _check(broker_id, partition, loads.brokers)
            chosen = loads.place(partition, instead_of=broker_id)
            moves.append(
                Move(
                    topic=partition.topic,
                    partition=partition.partition,
                    replicas=tuple(chosen if each == broker_id else each for each in partition.replicas),
                )
            )
    return moves


class _Loads:
    """How many replicas each broker has, and of how many it is the preferred leader."""

    def __init__(self, partitions: Sequence[PartitionState], brokers: Racks) -> None:
        self.brokers = brokers
        self._holds = Counter(each for partition in partitions for each in partition.replicas)
        self._prefers = Counter(partition.replicas[0] for partition in partitions)

    def place(self, partition: PartitionState, *, instead_of: int) -> int:
        """Choose the broker for the replica, and count it there."""
        stay = [each for each in partition.replicas if each != instead_of]
        taken = {self.brokers.get(each) for each in stay} - {None}
        leads = partition.replicas[0] == instead_of

        def cost(each: int) -> tuple[bool, int, int, int]:
            to_lead = self._prefers[each] if leads else 0
            return self.brokers[each] in taken, to_lead, self._holds[each], each

        chosen = min((each for each in self.brokers if each not in stay), key=cost)
        self._holds[chosen] += 1
        self._prefers[chosen] += leads
        return chosen


def _check(broker_id: int, partition: PartitionState, others: Collection[int]) -> None:
    if partition.leader is None:
        raise ClientError(
            f"{partition.topic_partition} has no leader to copy its replica on broker {broker_id} from: "
            "`headrace cluster status` says what it waits for"
        )
    if not set(others) - set(partition.replicas):
        raise ClientError(
            f"{partition.topic_partition} has {len(partition.replicas)} replicas, and besides broker "
            f"{broker_id} only {len(others)} {'is' if len(others) == 1 else 'are'} alive: "
            "start another broker first, or have fewer replicas "
            f"(`headrace cluster reassign --topic {partition.topic} --to ...`)"
        )
