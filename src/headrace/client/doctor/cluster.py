"""Findings about a cluster: its brokers and partitions, the safety of records, free space. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.client.cluster.log_dirs import LogDir
from headrace.client.cluster.status import DOWN, SILENT, ClusterStatus
from headrace.client.doctor.diagnosis import Area, Finding, gibibytes, some
from headrace.client.doctor.security import SecurityFacts
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import nodes

FULL_SHARE: Final = 0.05
TIGHT_SHARE: Final = 0.15
SAFE_REPLICAS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The cluster as one broker sees it."""

    controller: int
    brokers: tuple[int, ...]
    leaders: frozenset[tuple[str, int, int]]  # topic, partition, broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A gateway or ZooKeeper server, and whether it answers."""

    address: str
    answers: bool
    why: str = ""
    other: str = ""  # the id of the cluster that it serves, if not this one


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSafety:
    """The replication factor of a topic, and its min.insync.replicas."""

    replicas: int
    min_in_sync: int
    unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """The facts about a cluster."""

    status: ClusterStatus
    views: Mapping[int, View]  # of brokers that answer
    log_dirs: Mapping[int, tuple[LogDir, ...]]
    topics: Mapping[str, TopicSafety]
    coordination: tuple[Reached, ...] = ()
    http: tuple[Reached, ...] = ()
    security: SecurityFacts = field(default_factory=SecurityFacts)
    throttled: tuple[int, ...] = ()  # brokers whose replication is throttled
    damaged: Mapping[TopicPartition, Mapping[int, int]] = field(default_factory=dict)
    """How many offsets of a partition are damaged, by broker."""


def examine(area: Area, facts: ClusterFacts) -> Iterator[Finding]:
    controller = facts.status.controller
    yield area.graded(
        "controller",
        "No broker is the controller: no topic can be created, no partition moved and no leader elected."
        if controller is None
        else f"Broker {controller}.",
        "Check whether ZooKeeper answers: if it does, a controller is elected within seconds.",
        problem=controller is None,
    )
    yield _brokers(area, facts.status)
    yield from _views(area, facts.views)
    yield from _partitions(area, facts.status)
    yield from _damage(area, facts)
    if facts.throttled and not facts.status.reassignments:
        yield area.warning(
            "throttle",
            f"Replication is throttled on broker {some(facts.throttled)}, and no partition is being moved.",
            "headrace config unset broker ID leader.replication.throttled.rate "
            "follower.replication.throttled.rate",
        )
    yield from _disks(area, facts.log_dirs)
    yield from _copies(area, len(facts.status.brokers), facts.topics)
    if any(broker.node for broker in facts.status.brokers):
        yield from _nodes(area, facts)
    start = "Start it: without ZooKeeper no topic is created, no partition moved and no leader elected."
    read = "Read its log: `headrace up` writes logs/gateway.log in its directory."
    for check, services, do in (("zookeeper", facts.coordination, start), ("http", facts.http, read)):
        for service in services:
            answers = f"answers{f', and serves another cluster, {service.other}' if service.other else ''}"
            says = answers if service.answers else f"does not answer: {service.why}"
            yield area.graded(check, f"{service.address} {says}.", do, problem=not service.answers)


def _brokers(area: Area, status: ClusterStatus) -> Finding:
    down = [broker.id for broker in status.brokers if broker.state == DOWN]
    silent = [broker.id for broker in status.brokers if broker.state == SILENT]
    if down:
        return area.problem(
            "brokers",
            f"Broker {some(down)} is down and has replicas.",
            "Start it again; if it is gone for good, `headrace cluster drain` moves its replicas.",
        )
    if silent:
        return area.problem(
            "brokers",
            f"Broker {some(silent)} is registered and does not answer.",
            "Check its log, its machine and the network; restart it if it hangs.",
        )
    return area.ok("brokers", f"{len(status.brokers)} of {len(status.brokers)} answer.")


def _views(area: Area, views: Mapping[int, View]) -> Iterator[Finding]:
    if len(views) < 2:
        return
    usual, _ = Counter(views.values()).most_common(1)[0]
    others = [broker_id for broker_id, view in views.items() if view != usual]
    if not others:
        yield area.ok("views", "All brokers have the same metadata: brokers, controller and leaders.")
        return
    view = views[others[0]]
    what = (
        "another controller"
        if view.controller != usual.controller
        else "other brokers"
        if view.brokers != usual.brokers
        else f"other leaders of {some(sorted({f'{t}-{p}' for t, p, _ in view.leaders ^ usual.leaders}))}"
    )
    yield area.problem(
        "views",
        f"Broker {some(others)} has {what} in its metadata than the other brokers, also after a retry.",
        "Check whether it reaches ZooKeeper, and the controller reaches it; if so, restart it.",
    )


def _partitions(area: Area, status: ClusterStatus) -> Iterator[Finding]:
    sick = (
        (status.offline, "offline", "no replica is alive", "Start the brokers with the replicas."),
        (
            status.leaderless,
            "leaderless",
            "no live replica is known to have every record",
            "Start the last in-sync broker; `headrace cluster elect --unclean` may lose records.",
        ),
        (
            status.under_min_isr,
            "under min ISR",
            "writes with acks=all are refused (NOT_ENOUGH_REPLICAS)",
            "Start the missing brokers; `headrace cluster status` names them.",
        ),
    )
    for partitions, check, means, do in sick:
        if partitions:
            yield area.problem(check, f"{some(each.topic_partition for each in partitions)}: {means}.", do)
    worse = {partition.topic_partition for partitions, *_ in sick for partition in partitions}
    behind = [each.topic_partition for each in status.under_replicated if each.topic_partition not in worse]
    if behind:
        yield area.warning(
            "under-replicated",
            f"{some(behind)}: not all replicas are in sync, so fewer brokers may fail.",
            "Wait if a broker was just restarted; otherwise check its log and its disk.",
        )
    if not worse and not behind:
        yield area.ok("partitions", f"All replicas of {status.partitions:,} partitions are in sync.")
    if status.not_preferred:
        yield area.warning(
            "leaders",
            f"{len(status.not_preferred):,} partitions are not led by the preferred replica: load is uneven.",
            "headrace cluster elect",
        )


def _damage(area: Area, facts: ClusterFacts) -> Iterator[Finding]:
    """Yield the partitions with damaged segments: which replicas can be repaired, and which cannot."""
    replicas = {name: topic.replicas for name, topic in facts.topics.items()}
    kinds: dict[bool, list[str]] = {False: [], True: []}  # whether another replica may have the records
    for partition, brokers in sorted(facts.damaged.items()):
        where = " and ".join(f"{count:,} offsets on broker {each}" for each, count in sorted(brokers.items()))
        kinds[len(brokers) < replicas.get(partition.topic, 0)].append(f"{partition} ({where})")
    if kinds[True]:
        yield area.warning(
            "damage",
            f"{some(kinds[True])}: segments are damaged; the broker copies them from another replica.",
            "Check the disk. If this stays, search the broker's log for `could not be repaired`.",
        )
    if kinds[False]:
        yield area.problem(
            "damage",
            f"{some(kinds[False])}: segments are damaged on every replica; fetches of these records fail "
            "(KAFKA_STORAGE_ERROR).",
            "Stop a broker and restore the file that its log names from a backup, or have consumers continue "
            "after these offsets with `headrace group reset-offsets`.",
        )


def _disks(area: Area, log_dirs: Mapping[int, tuple[LogDir, ...]]) -> Iterator[Finding]:
    lowest: tuple[float, str] | None = None
    for broker_id, directories in sorted(log_dirs.items()):
        for each in directories:
            where = f"broker {broker_id}, {each.path}"
            if each.error is not None:
                yield area.problem("disk", f"{where}: {each.error}.", "Check the broker's log, and the disk.")
            if each.total_bytes and each.usable_bytes is not None:
                share = each.usable_bytes / each.total_bytes
                said = f"{where}: {gibibytes(each.usable_bytes)} of {gibibytes(each.total_bytes)} are free"
                lowest = min(lowest or (share, said), (share, said))
    if lowest is None:
        return
    share, said = lowest
    yield area.graded(
        "disk",
        f"The fullest is {said}.",
        "Make room, lower retention.ms of large topics, or move partitions with `headrace cluster reassign`: "
        "a broker stops when its disk is full.",
        problem=share < FULL_SHARE,
        warning=share < TIGHT_SHARE,
    )


def _nodes(area: Area, facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about the machines that several brokers share."""
    count = len(nodes(facts.status.locations))
    many = [name for name, topic in sorted(facts.topics.items()) if topic.replicas > count]
    sharing = facts.status.sharing_node
    if sharing:
        yield area.warning(
            "nodes",
            f"{some(partition.topic_partition for partition in sharing)}: replicas are on the same node, "
            "although another node has none: they fail together.",
            "headrace cluster reassign --topic NAME --partition NUMBER --to BROKER,...",
        )
    if many:
        yield area.warning(
            "nodes",
            f"{some(many)} has more replicas than there are nodes ({count}): replicas that share a node fail "
            "together.",
            "Add a node, or have fewer replicas (`headrace cluster reassign`).",
        )
    if not sharing and not many:
        yield area.ok("nodes", f"Replicas of a partition are on different nodes, of which there are {count}.")


def _copies(area: Area, brokers: int, topics: Mapping[str, TopicSafety]) -> Iterator[Finding]:
    if brokers == 1:
        yield area.ok("copies", "There is one broker: every record has one copy.")
        return
    single = [name for name, each in sorted(topics.items()) if each.replicas == 1]
    weak = [
        name
        for name, each in sorted(topics.items())
        if each.replicas >= SAFE_REPLICAS and each.min_in_sync == 1 and not name.startswith("__")
    ]
    unclean = [name for name, each in sorted(topics.items()) if each.unclean]
    if single:
        yield area.warning(
            "copies",
            f"{some(single)} has one replica: unavailable while its broker is down, and lost with its disk.",
            "headrace cluster reassign --topic NAME --to 1,2,3; for new topics: default.replication.factor=3",
        )
    if weak:
        yield area.warning(
            "min.insync.replicas",
            f"{some(weak)} has min.insync.replicas=1: acks=all waits for one copy only.",
            "headrace config set topic NAME min.insync.replicas=2",
        )
    if unclean:
        yield area.warning(
            "unclean elections",
            f"{some(unclean)} may be led by a replica that lacks acknowledged records.",
            "headrace config set topic NAME unclean.leader.election.enable=false",
        )
    if not single and not weak and not unclean:
        yield area.ok("copies", "Every topic has several replicas, and acks=all waits for more than one.")
