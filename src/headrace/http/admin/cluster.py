"""The cluster: its brokers, what state its partitions are in, who leads and who moves."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Literal

from fastapi import APIRouter
from pydantic import Field

from headrace.client.cluster.cluster import Cluster, Election
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import Broker, ClusterStatus, PartitionState
from headrace.client.errors import ClientError
from headrace.http.gateway.asking import PLACES, Body, BrokerId, Index, Name
from headrace.http.problems import answers
from headrace.http.reach import Reached
from headrace.protocol.ids import TopicPartition

router = APIRouter(tags=["cluster"])
_REFUSALS = answers(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many partitions there are, and how many of them are not as they should be."""

    total: int
    offline: int
    leaderless: int
    under_replicated: int
    under_min_isr: int
    not_preferred: int
    reassigning: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """The partitions that somebody should look at; one may be in several lists."""

    offline: tuple[PartitionState, ...]
    leaderless: tuple[PartitionState, ...]
    under_replicated: tuple[PartitionState, ...]
    under_min_isr: tuple[PartitionState, ...]
    not_preferred: tuple[PartitionState, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswer:
    """A cluster's state."""

    cluster_id: str | None
    controller: int | None
    healthy: bool
    brokers: tuple[Broker, ...]
    topics: int
    partitions: Counts
    needing_care: Care
    reassignments: tuple[Reassignment, ...]


@router.get("/cluster", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE), summary="The cluster's state")
def cluster(reach: Reached) -> ClusterAnswer:
    """Brokers, the controller, and how many partitions are offline, leaderless or under-replicated.

    A broker is `up`, `silent` (it counts as alive and does not answer) or `down`.
    """
    with reach.cluster() as found:
        return state(found.status())


def state(found: ClusterStatus) -> ClusterAnswer:
    """What the API says of a status."""
    return ClusterAnswer(
        cluster_id=found.cluster_id,
        controller=found.controller,
        healthy=found.is_healthy,
        brokers=found.brokers,
        topics=found.topics,
        partitions=Counts(
            total=found.partitions,
            offline=len(found.offline),
            leaderless=len(found.leaderless),
            under_replicated=len(found.under_replicated),
            under_min_isr=len(found.under_min_isr),
            not_preferred=len(found.not_preferred),
            reassigning=len(found.reassignments),
        ),
        needing_care=Care(
            offline=found.offline,
            leaderless=found.leaderless,
            under_replicated=found.under_replicated,
            under_min_isr=found.under_min_isr,
            not_preferred=found.not_preferred,
        ),
        reassignments=found.reassignments,
    )


# -- leading -----------------------------------------------------------------------------------


class ElectBody(Body):
    """Which partitions are to have another leader; without a topic, all that need it."""

    kind: Annotated[
        Literal["preferred", "unclean"],
        Field(description="`unclean` takes any replica that is alive: acknowledged records may be lost."),
    ] = "preferred"
    topic: Name | None = None
    partitions: Annotated[list[Index], Field(default_factory=list, max_length=PLACES)]


@router.post("/elect", responses=_REFUSALS, summary="Elect leaders")
def elect(asked: ElectBody, reach: Reached) -> list[Election]:
    """Let the preferred replicas lead, or with `unclean` whoever is alive where nobody leads."""
    with reach.cluster() as found:
        places = places_of(found, asked.topic, asked.partitions)
        return found.elect(places, unclean=asked.kind == "unclean")


def places_of(cluster: Cluster, topic: str | None, indexes: list[int]) -> list[TopicPartition] | None:
    """The partitions that are meant: these of a topic, all of it, or all there are (None)."""
    if topic is None:
        if indexes:
            raise ClientError("partitions are of a topic: say which")
        return None
    there = [each.partition for each in cluster.partitions_of(topic)]
    for index in indexes:
        if index not in there:
            raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")
    return [TopicPartition(topic, index) for index in dict.fromkeys(indexes or there)]


# -- moving ------------------------------------------------------------------------------------


class MoveBody(Body):
    """Where a partition's replicas are to be, the preferred leader first."""

    topic: Name
    partition: Index
    replicas: Annotated[list[Index], Field(min_length=1, max_length=1000, examples=[[1, 2, 3]])]


class ReassignBody(Body):
    """Partitions and where they are to be."""

    moves: Annotated[list[MoveBody], Field(min_length=1, max_length=PLACES)]
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A partition that moves: from these brokers to those."""

    topic: str
    partition: int
    before: tuple[int, ...]
    replicas: tuple[int, ...]


@router.get("/reassignments", responses=_REFUSALS, summary="Partitions on their way to other brokers")
def reassignments(reach: Reached) -> list[Reassignment]:
    """Every move under way. `replicas` are all that the partition has meanwhile."""
    with reach.cluster() as found:
        return found.reassignments()


@router.post("/reassignments", responses=_REFUSALS, summary="Move partitions")
def reassign(asked: ReassignBody, reach: Reached) -> list[Moved]:
    """Have partitions begin to move; none does if one cannot. With `dry_run` nothing moves."""
    moves = [
        Move(topic=each.topic, partition=each.partition, replicas=tuple(each.replicas))
        for each in asked.moves
    ]
    if len({move.topic_partition for move in moves}) != len(moves):
        raise ClientError("a partition is there twice")
    with reach.cluster() as found:
        return moved(moves, found.check(moves) if asked.dry_run else found.reassign(moves))


class CancelBody(Body):
    """Which moves are to be undone; without a topic, all."""

    topic: Name | None = None
    partitions: Annotated[list[Index], Field(default_factory=list, max_length=PLACES)]


@router.post("/reassignments/cancel", responses=_REFUSALS, summary="Have partitions stay where they were")
def cancel(asked: CancelBody, reach: Reached) -> list[Reassignment]:
    """Stop moves, and return those that were under way."""
    with reach.cluster() as found:
        places = places_of(found, asked.topic, asked.partitions)
        if places is not None and not asked.partitions:
            under_way = {each.topic_partition for each in found.reassignments()}
            places = [place for place in places if place in under_way]
        return found.cancel(places)


@router.post("/brokers/{broker_id}/drain", responses=_REFUSALS, summary="Move everything off a broker")
def drain(broker_id: BrokerId, reach: Reached, *, dry_run: bool = True) -> list[Moved]:
    """Where its replicas go, to brokers of other racks if there are any; nothing moves with `dry_run`."""
    with reach.cluster() as found:
        moves = found.plan_drain(broker_id)
        if not moves:
            return []
        return moved(moves, found.check(moves) if dry_run else found.reassign(moves))


def moved(moves: list[Move], before: dict[TopicPartition, tuple[int, ...]]) -> list[Moved]:
    return [
        Moved(
            topic=each.topic,
            partition=each.partition,
            before=before[each.topic_partition],
            replicas=each.replicas,
        )
        for each in moves
    ]
