"""Moves of partitions: those in progress, and the plan that drains a broker."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from headrace.client.cluster.log_dirs import read_log_dirs, read_progress, size_of, sizes
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.throttle import read_rates
from headrace.client.cluster.topic_overview import total
from headrace.client.errors import ClientError, Unreachable
from headrace.gateway.admin.cluster import Moved
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import table_of
from headrace.gateway.problems import DENIED
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import PARTITIONS, BrokerId
from headrace.protocol.ids import TopicPartition, by_topic

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_COLUMNS: Final = {"place": lambda row: row.reassignment.topic_partition, "done": lambda row: row.share}


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
            request, found, _COLUMNS, text=lambda row: row.reassignment.topic, sort="place", size=100
        ),
        started=started,
        complete=max(0, started - len(found)),
        copied=total(each.copied_bytes for each in found),
        total=total(each.total_bytes for each in found),
        missing=lambda move: missing_brokers(move, live),
        throttle=min(read_rates(reach.brokers, nodes).values(), default=None),
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
