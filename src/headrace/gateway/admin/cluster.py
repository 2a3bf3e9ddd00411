"""The cluster: the state of its brokers and partitions, elections, and reassignments."""

from dataclasses import dataclass
from typing import Annotated, Final, Literal

from fastapi import APIRouter
from pydantic import Field

from headrace.client.cluster.cluster import Cluster, Election
from headrace.client.cluster.moves import Move, Reassignment
from headrace.client.cluster.status import Broker, PartitionState
from headrace.client.errors import ClientError
from headrace.gateway.problems import answers
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import PARTITIONS, Body, BrokerId, Index, Name, NodeName
from headrace.protocol.ids import TopicPartition

router = APIRouter(tags=["cluster"], responses=answers(400, 404, 503))


_CARE: Final = ("offline", "leaderless", "under_replicated", "under_min_isr", "not_preferred")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAnswer:
    """The state of a cluster; a partition may need care for several reasons."""

    cluster_id: str | None
    controller: int | None
    healthy: bool
    brokers: tuple[Broker, ...]
    topics: int
    partitions: dict[str, int]
    needing_care: dict[str, tuple[PartitionState, ...]]
    reassignments: tuple[Reassignment, ...]


@router.get("/cluster")
def cluster(reach: ReachDep) -> ClusterAnswer:
    """Return brokers, the controller, and the partitions that are offline, leaderless or under-replicated.

    A broker is `up`, `silent` (it is registered and does not answer) or `down`.
    """
    with reach.cluster() as client:
        status = client.status()
    care = {name: getattr(status, name) for name in _CARE}
    return ClusterAnswer(
        cluster_id=status.cluster_id,
        controller=status.controller,
        healthy=status.is_healthy,
        brokers=status.brokers,
        topics=status.topics,
        partitions={"total": status.partitions, "reassigning": len(status.reassignments)}
        | {name: len(partitions) for name, partitions in care.items()},
        needing_care=care,
        reassignments=status.reassignments,
    )


class SelectionBody(Body):
    """Partitions of a topic, all partitions of a topic, or all topics if there is no topic."""

    topic: Name | None = None
    partitions: Annotated[list[Index], Field(default_factory=list, max_length=PARTITIONS)]

    def topic_partitions(self, client: Cluster) -> list[TopicPartition] | None:
        """Return the selected partitions, or None for all; raise ClientError if one does not exist."""
        if self.topic is None:
            if self.partitions:
                raise ClientError("partitions without a topic: name the topic, too")
            return None
        indexes = [each.partition for each in client.partitions_of(self.topic)]
        for index in self.partitions:
            if index not in indexes:
                raise ClientError(f"{self.topic} has no partition {index}, only 0 to {max(indexes)}")
        return [TopicPartition(self.topic, index) for index in dict.fromkeys(self.partitions or indexes)]


class ElectBody(SelectionBody):
    """The partitions to elect leaders for; without a topic, all that need an election."""

    kind: Annotated[
        Literal["preferred", "unclean"],
        Field(description="`unclean` elects any replica that is alive: acknowledged records may be lost."),
    ] = "preferred"


@router.post("/elect")
def elect(body: ElectBody, reach: ReachDep) -> list[Election]:
    """Elect the preferred replicas, or with `unclean` any live replica of a partition without a leader."""
    with reach.cluster() as client:
        return client.elect(body.topic_partitions(client), unclean=body.kind == "unclean")


class MoveBody(Body):
    """The new replicas of a partition, the preferred leader first."""

    topic: Name
    partition: Index
    replicas: Annotated[list[Index], Field(min_length=1, max_length=1000)]


class ReassignBody(Body):
    moves: Annotated[list[MoveBody], Field(min_length=1, max_length=PARTITIONS)]
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A partition with its replicas before and after the reassignment."""

    topic: str
    partition: int
    before: tuple[int, ...]
    replicas: tuple[int, ...]


@router.get("/reassignments")
def reassignments(reach: ReachDep) -> list[Reassignment]:
    """Return the reassignments in progress, with all replicas that each partition has meanwhile."""
    with reach.cluster() as client:
        return client.reassignments()


@router.post("/reassignments")
def reassign(body: ReassignBody, reach: ReachDep) -> list[Moved]:
    """Start to reassign partitions, or none if one cannot be. With `dry_run` nothing is reassigned."""
    moves = [
        Move(topic=each.topic, partition=each.partition, replicas=tuple(each.replicas)) for each in body.moves
    ]
    if len({move.topic_partition for move in moves}) != len(moves):
        raise ClientError("a partition is named twice")
    with reach.cluster() as client:
        return _moved(client, moves, dry_run=body.dry_run)


class CancelBody(SelectionBody):
    """The reassignments to cancel; without a topic, all."""


@router.post("/reassignments/cancel")
def cancel(body: CancelBody, reach: ReachDep) -> list[Reassignment]:
    """Cancel reassignments, and return those that were in progress."""
    with reach.cluster() as client:
        selected = body.topic_partitions(client)
        if selected is not None and not body.partitions:
            in_progress = {reassignment.topic_partition for reassignment in client.reassignments()}
            selected = [each for each in selected if each in in_progress]
        return client.cancel(selected)


@router.post("/brokers/{broker_id}/drain")
def drain(broker_id: BrokerId, reach: ReachDep, *, dry_run: bool = True) -> list[Moved]:
    """Return the new replicas, on other racks and nodes if there are any; `dry_run` reassigns nothing."""
    with reach.cluster() as client:
        moves = client.plan_drain([broker_id])
        return _moved(client, moves, dry_run=dry_run) if moves else []


@router.post("/nodes/{node}/drain")
def drain_node(node: NodeName, reach: ReachDep, *, dry_run: bool = True) -> list[Moved]:
    """Return the new replicas, on other nodes. With `dry_run` nothing is reassigned."""
    with reach.cluster() as client:
        moves = client.plan_drain(client.brokers_of_node(node))
        return _moved(client, moves, dry_run=dry_run) if moves else []


def _moved(client: Cluster, moves: list[Move], *, dry_run: bool) -> list[Moved]:
    before = client.check(moves) if dry_run else client.reassign(moves)
    return [
        Moved(
            topic=move.topic,
            partition=move.partition,
            before=before[move.topic_partition],
            replicas=move.replicas,
        )
        for move in moves
    ]
