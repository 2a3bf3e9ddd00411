"""The status of a cluster: its brokers, and the partitions that need attention. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from headrace.client.cluster.moves import Reassignment
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import Location, Locations, node_of
from headrace.protocol.locations import nodes as node_groups

UP, SILENT, DOWN = "up", "silent", "down"
OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED, HEALTHY = range(4)  # severities, the worst first


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """A broker: up, silent (registered, and does not answer), or down with replicas on it."""

    id: int
    host: str | None = None
    port: int | None = None
    rack: str | None = None
    node: str | None = None  # the machine, if the broker has told and may share it with others
    state: str
    controller: bool = False
    pid: int | None = None  # None if it does not report it
    leads: int = 0  # partitions
    follows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """A partition, its leader and its ISR."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    min_in_sync: int = 1
    eligible: tuple[int, ...] = ()  # eligible leader replicas, which are not in the ISR (KIP-966)

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def severity(self) -> int:
        """Return the partition's worst problem; OFFLINE if nobody leads it, whatever the reason."""
        if self.leader is None:
            return OFFLINE
        if len(self.in_sync) < self.min_in_sync:
            return UNDER_MIN_ISR
        return UNDER_REPLICATED if self.lacks else HEALTHY

    @property
    def lacks(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.in_sync)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """The state of all brokers, and lists of partitions by problem.

    Nobody leads a partition that is offline or leaderless: an offline one has no replica alive, a leaderless
    one has, but none that is known to have everything. The lists may overlap otherwise.
    """

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]
    topics: int
    partitions: int
    under_replicated: tuple[PartitionState, ...]
    under_min_isr: tuple[PartitionState, ...]
    offline: tuple[PartitionState, ...]
    leaderless: tuple[PartitionState, ...]
    not_preferred: tuple[PartitionState, ...]  # whose first replica is in the ISR and does not lead
    reassignments: tuple[Reassignment, ...]
    sharing_node: tuple[PartitionState, ...] = ()  # whose replicas could be on more nodes than they are

    @property
    def locations(self) -> Locations:
        return locations_of(self.brokers)

    @property
    def is_healthy(self) -> bool:
        sick = self.under_replicated or self.under_min_isr or self.offline or self.leaderless
        return not sick and all(broker.state == UP for broker in self.brokers)


def cluster_status(
    *,
    cluster_id: str | None,
    controller: int | None,
    nodes: Sequence[Broker],
    partitions: Sequence[PartitionState],
    reassignments: Sequence[Reassignment] = (),
) -> ClusterStatus:
    live = {node.id for node in nodes}
    adding = {reassignment.topic_partition: set(reassignment.adding) for reassignment in reassignments}

    def missing(partition: PartitionState) -> set[int]:
        """Return replicas that should be alive and in the ISR, without those that are being added."""
        there = live & set(partition.in_sync)
        return set(partition.replicas) - there - adding.get(partition.topic_partition, set())

    unled = [each for each in partitions if each.leader is None]
    locations = locations_of(nodes)
    return ClusterStatus(
        cluster_id=cluster_id,
        controller=controller,
        brokers=tuple(_brokers(nodes, partitions, controller)),
        topics=len({each.topic for each in partitions}),
        partitions=len(partitions),
        under_replicated=tuple(each for each in partitions if missing(each)),
        under_min_isr=tuple(each for each in partitions if len(each.in_sync) < each.min_in_sync),
        offline=tuple(each for each in unled if not live & set(each.replicas)),
        leaderless=tuple(each for each in unled if live & set(each.replicas)),
        not_preferred=tuple(
            each
            for each in partitions
            if each.leader not in {None, each.replicas[0]} and each.replicas[0] in live & set(each.in_sync)
        ),
        reassignments=tuple(reassignments),
        sharing_node=tuple(each for each in partitions if _shares_node(each, locations)),
    )


def not_ready(status: ClusterStatus, broker_id: int) -> str | None:
    """Return why another broker should not be stopped yet after a restart of this one; None if it may be."""
    state = next((broker.state for broker in status.brokers if broker.id == broker_id), None)
    if state != UP:
        return "it is not registered" if state is None else f"it is {state}"
    behind = [each for each in status.under_replicated if broker_id in each.lacks]
    if behind:
        first = f"{behind[0].topic}-{behind[0].partition}"
        return f"{len(behind)} of its replicas are not in sync, the first is {first}"
    return None


def locations_of(brokers: Iterable[Broker]) -> Locations:
    return {broker.id: Location(broker.rack, broker.node) for broker in brokers if broker.state != DOWN}


def _shares_node(partition: PartitionState, locations: Locations) -> bool:
    """Return whether replicas are on the same node while another node has none."""
    used = {node_of(replica, locations) for replica in partition.replicas}
    return len(used) < len(partition.replicas) and len(used) < len(node_groups(locations))


def _brokers(
    nodes: Sequence[Broker], partitions: Sequence[PartitionState], controller: int | None
) -> Iterator[Broker]:
    known = {node.id: node for node in nodes}
    holds = Counter(replica for partition in partitions for replica in partition.replicas)
    leads = Counter(partition.leader for partition in partitions)
    for broker_id in sorted(known.keys() | holds.keys()):
        yield replace(
            known.get(broker_id) or Broker(id=broker_id, state=DOWN),
            controller=broker_id == controller,
            leads=leads[broker_id],
            follows=holds[broker_id] - leads[broker_id],
        )
