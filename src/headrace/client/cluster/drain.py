"""Where the replicas of brokers move when these are drained. Pure."""

from collections import Counter
from collections.abc import Collection, Sequence

from headrace.client.cluster.moves import Move
from headrace.client.cluster.status import PartitionState
from headrace.client.errors import ClientError
from headrace.protocol.locations import Locations, node_of


def drain(drained: Collection[int], partitions: Sequence[PartitionState], brokers: Locations) -> list[Move]:
    """Return moves after which no replica is on the `drained` brokers; other replicas stay where they are.

    `brokers` are all live ones. A rack without a replica of the partition is preferred, then a node without
    one, then the broker with the fewest replicas. A new replica takes the old one's place in the list, so
    preferred leaders are spread as well. ClientError if a partition has no leader to copy from, or too few
    other brokers are alive.
    """
    loads = _Loads(partitions, brokers, [broker for broker in brokers if broker not in drained])
    moves = []
    for partition in sorted(partitions, key=lambda each: each.topic_partition):
        if not set(drained).isdisjoint(partition.replicas):
            _check(drained, partition, loads.candidates)
            moves.append(
                Move(
                    topic=partition.topic,
                    partition=partition.partition,
                    replicas=loads.replace(partition.replicas, drained),
                )
            )
    return moves


class _Loads:
    """How many replicas each broker has, and of how many it is the preferred leader."""

    def __init__(
        self, partitions: Sequence[PartitionState], brokers: Locations, candidates: Sequence[int]
    ) -> None:
        self.candidates = candidates
        self._brokers = brokers
        self._holds = Counter(replica for partition in partitions for replica in partition.replicas)
        self._prefers = Counter(partition.replicas[0] for partition in partitions)

    def replace(self, replicas: Sequence[int], drained: Collection[int]) -> tuple[int, ...]:
        """Return the replicas of a partition with others instead of the drained ones, and count those."""
        stay = [replica for replica in replicas if replica not in drained]
        replaced = []
        for position, each in enumerate(replicas):
            if each in drained:
                chosen = self._choose(stay, leads=position == 0)
                stay.append(chosen)
                replaced.append(chosen)
            else:
                replaced.append(each)
        return tuple(replaced)

    def _choose(self, others: Sequence[int], *, leads: bool) -> int:
        racks = {self._brokers[other].rack for other in others if other in self._brokers} - {None}
        nodes = Counter(node_of(other, self._brokers) for other in others)

        def cost(each: int) -> tuple[bool, int, int, int, int]:
            to_lead = self._prefers[each] if leads else 0
            on_node = nodes[node_of(each, self._brokers)]
            return self._brokers[each].rack in racks, on_node, to_lead, self._holds[each], each

        chosen = min((candidate for candidate in self.candidates if candidate not in others), key=cost)
        self._holds[chosen] += 1
        self._prefers[chosen] += leads
        return chosen


def _check(drained: Collection[int], partition: PartitionState, candidates: Collection[int]) -> None:
    which = f"{'broker' if len(drained) == 1 else 'brokers'} {', '.join(map(str, sorted(drained)))}"
    if partition.leader is None:
        raise ClientError(
            f"{partition.topic_partition} has no leader to copy its replica on {which} from: "
            "`headrace cluster status` says what it waits for"
        )
    count = len(partition.replicas)
    moving = len(set(drained).intersection(partition.replicas))
    if len(set(candidates) - set(partition.replicas)) < moving:
        raise ClientError(
            f"{partition.topic_partition} has {count} {'replica' if count == 1 else 'replicas'}, and besides "
            f"{which} {_alive(len(candidates))}: "
            "start another broker first, or have fewer replicas "
            f"(`headrace cluster reassign --topic {partition.topic} --to ...`)"
        )


def _alive(count: int) -> str:
    if not count:
        return "no broker is alive"
    return f"only {count} {'is' if count == 1 else 'are'} alive"
