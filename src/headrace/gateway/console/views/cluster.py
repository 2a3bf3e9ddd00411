"""The overview with brokers, partitions with problems and throughput; one broker, moves, and drains."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from headrace.client.admin.documented import DocumentedConfig
from headrace.client.cluster.log_dirs import read_log_dirs, read_progress, size_of, sizes
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import DOWN, SILENT, UP, ClusterStatus, PartitionState
from headrace.client.cluster.topic_overview import total
from headrace.client.errors import ClientError, Unreachable
from headrace.gateway.admin import brokers
from headrace.gateway.admin.cluster import Moved
from headrace.gateway.console.formats import plural
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import Table, table_of
from headrace.gateway.current import clients_of, root_of
from headrace.gateway.problems import DENIED
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import PARTITIONS, BrokerId
from headrace.protocol.ids import TopicPartition, by_topic

DISK_S: Final = 15.0  # for which sizes are kept: with many partitions they take long to read

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Trouble:
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Care:
    partition: PartitionState
    tags: Sequence[tuple[str, str]]

    @property
    def rank(self) -> tuple[int, bool, TopicPartition]:
        """The sort key by which the worst is the first; of what is equally bad, internal topics are last."""
        return self.partition.severity, is_internal(self.partition.topic), self.partition.topic_partition


@router.get("/ui")
async def bare(request: Request) -> Response:
    return RedirectResponse(f"{root_of(request.scope)}/ui/")


@router.get("/ui/")
def cluster(request: Request, reach: ReachDep) -> Response:
    with reach.cluster() as found:
        status = found.status()
    up = {each.id for each in status.brokers if each.state == UP}

    def read_disk() -> dict[int, int]:
        nodes = [node for node in reach.brokers.nodes() if node.id in up]
        log_dirs = read_log_dirs(reach.brokers, nodes)
        return {broker: sum(log_dir.size_bytes for log_dir in dirs) for broker, dirs in log_dirs.items()}

    care = table_of(
        request,
        needing_care(status),
        {"worst": lambda row: row.rank},
        text=lambda row: row.partition.topic,
        sort="worst",
        prefix="care-",
        size=25,
    )
    return page(
        request,
        "cluster.html",
        title="Cluster",
        status=status,
        up=len(up),
        has_nodes=any(each.node for each in status.brokers),
        troubles=list(troubles(status)),
        care=care,
        disk=clients_of(request).console.disk.aged(DISK_S, read_disk),
    )


def troubles(status: ClusterStatus) -> Iterator[Trouble]:
    unled = len(status.offline) + len(status.leaderless)
    if unled:
        yield Trouble("bad", f"{plural(unled, 'partition')} without a leader")
    for state, tone in ((DOWN, "bad"), (SILENT, "warn")):
        for each in status.brokers:
            if each.state == state:
                yield Trouble(tone, f"broker {each.id} is {state}")
    if status.controller is None:
        yield Trouble("bad", "no broker is the controller")
    if status.under_min_isr:
        yield Trouble("bad", f"{plural(len(status.under_min_isr), 'partition')} below min.insync.replicas")
    if status.under_replicated:
        yield Trouble("warn", f"{plural(len(status.under_replicated), 'partition')} under-replicated")
    if status.sharing_node:
        yield Trouble(
            "warn", f"{plural(len(status.sharing_node), 'partition')} with replicas that share a node"
        )


def is_internal(topic: str) -> bool:
    """Return whether the name of a topic begins with `_`, as those of brokers and of the gateway do."""
    return topic.startswith("_")


def needing_care(status: ClusterStatus) -> list[Care]:
    """Return every partition with a problem, once, with all its problems, the worst first."""
    lists = (
        ("bad", "offline", status.offline),
        ("bad", "no leader", status.leaderless),
        ("bad", "below min ISR", status.under_min_isr),
        ("warn", "under-replicated", status.under_replicated),
    )
    found: dict[tuple[str, int], tuple[PartitionState, list[tuple[str, str]]]] = {}
    for tone, name, partitions in lists:
        for partition in partitions:
            found.setdefault(partition.topic_partition, (partition, []))[1].append((tone, name))
    return sorted((Care(*each) for each in found.values()), key=lambda row: row.rank)


@router.get("/ui/brokers/{broker_id}")
def broker(request: Request, broker_id: BrokerId, reach: ReachDep) -> Response:
    found = brokers.broker(broker_id, reach)
    answers = found.broker.state == UP  # a broker that does not answer has no settings to show
    return page(
        request,
        "broker.html",
        title=f"Broker {broker_id}",
        broker=found.broker,
        directories=found.log_dirs,
        configs=settings_table(request, reach.documented.of_broker(broker_id)) if answers else None,
        only_set="set" in request.query_params,
        owner="broker",
        change=f"/api/v1/brokers/{broker_id}/configs",
        of=f"broker {broker_id}",
    )


def settings_table(request: Request, configs: Sequence[DocumentedConfig]) -> Table[DocumentedConfig]:
    """Return the settings; with `set` in the address, only those that are not the default."""
    only_set = "set" in request.query_params
    return table_of(
        request,
        [config for config in configs if not only_set or not config.is_default],
        {"name": lambda row: row.name, "source": lambda row: row.source},
        text=lambda row: f"{row.name} {row.value}",
        sort="name",
        size=100,
    )


_MOVE_COLUMNS: Final = {"place": lambda row: row.reassignment.topic_partition, "done": lambda row: row.share}


@router.get("/ui/moves")
def moves(
    request: Request, reach: ReachDep, of: Annotated[str, Query(pattern="^[0-9]{0,6}$")] = ""
) -> Response:
    """`of` is the number of moves that were started together, to tell how many are complete."""
    found = read_progress(reach.brokers)
    nodes = reach.brokers.nodes()
    live = {node.id for node in nodes}
    started = int(of or 0)
    return page(
        request,
        "moves.html",
        title="Moves",
        table=table_of(
            request, found, _MOVE_COLUMNS, text=lambda row: row.reassignment.topic, sort="place", size=100
        ),
        started=started,
        complete=max(0, started - len(found)),
        copied=total(each.copied_bytes for each in found),
        total=total(each.total_bytes for each in found),
        missing=lambda move: missing_brokers(move, live),
    )


def missing_brokers(move: Reassignment, live: Collection[int]) -> str:
    """Return the brokers, such as `broker 2`, that a move waits for because they are not registered.

    These are new ones, and the old ones if none of them is there to copy from.
    """
    missing = [each for each in move.adding if each not in live]
    old = [replica for replica in move.replicas if replica not in move.adding]
    missing += old if not any(each in live for each in old) else []
    return f"{'broker' if len(missing) == 1 else 'brokers'} {', '.join(map(str, missing))}" if missing else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A move of a plan, and the bytes that each new replica has to copy."""

    moved: Moved
    size_bytes: int | None

    @property
    def to_copy(self) -> int | None:
        new = sum(replica not in self.moved.before for replica in self.moved.replicas)
        return None if self.size_bytes is None else new * self.size_bytes


@router.get("/ui/brokers/{broker_id}/drain")
def drain(request: Request, broker_id: BrokerId, reach: ReachDep) -> Response:
    """The plan that is shown is what the button starts: another one is made when the page is loaded again."""
    plan: list[Planned] = []
    problem = ""
    try:
        plan = _plan(reach, broker_id)
    except Unreachable:
        raise
    except ClientError as error:
        if error.error_code in DENIED:
            raise
        problem = str(error)
    return page(
        request,
        "drain.html",
        title=f"Drain broker {broker_id}",
        broker=broker_id,
        plan=plan[:PARTITIONS],
        left_out=max(0, len(plan) - PARTITIONS),
        problem=problem,
        total=total(each.to_copy for each in plan),
        moves=[
            {"topic": each.moved.topic, "partition": each.moved.partition, "replicas": each.moved.replicas}
            for each in plan[:PARTITIONS]
        ],
    )


def _plan(reach: Reach, broker_id: int) -> list[Planned]:
    with reach.cluster() as client:
        found: list[Move] = client.plan_drain([broker_id])
        before = client.check(found) if found else {}
        leaders = {
            TopicPartition(topic, each.partition): each.leader
            for topic in {move.topic for move in found}
            for each in client.partitions_of(topic)
        }
    places = by_topic(each.topic_partition for each in found)
    taken = sizes(read_log_dirs(reach.brokers, reach.brokers.nodes(), places)) if found else {}
    return [
        Planned(
            moved=Moved(
                topic=each.topic,
                partition=each.partition,
                before=before[each.topic_partition],
                replicas=each.replicas,
            ),
            size_bytes=size_of(taken, leaders.get(each.topic_partition), each.topic_partition),
        )
        for each in found
    ]
