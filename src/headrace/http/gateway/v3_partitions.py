"""REST proxy, v3: partitions, their replicas, and those on their way to other brokers."""

from collections.abc import Collection as Some
from collections.abc import Sequence
from http import HTTPStatus

from fastapi import APIRouter

from headrace.client.admin.topics import Partition
from headrace.client.cluster.moves import Reassignment
from headrace.http.gateway.asking import BrokerId, PartitionId, TopicName
from headrace.http.gateway.v2_topics import the_partition
from headrace.http.gateway.v3_envelope import (
    REFUSALS,
    Collection,
    Fields,
    Linked,
    Links,
    Resource,
    V3Route,
)
from headrace.http.problems import Problem
from headrace.http.reach import Reach, Reached
from headrace.protocol.ids import TopicPartition

router = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["REST proxy v3"], route_class=V3Route)


@router.get(
    "/-/partitions/-/reassignment", response_model=Collection, responses=REFUSALS, summary="Moves under way"
)
def reassignments(links: Linked, reach: Reached) -> Fields:
    """Of all topics."""
    at = ["topics", "-", "partitions", "-", "reassignment"]
    return links.collection("Reassignment", at, (_reassignment(links, each) for each in _moves(reach)))


@router.get(
    "/{topic_name}/partitions/-/reassignment",
    response_model=Collection,
    responses=REFUSALS,
    summary="Moves of a topic",
)
def topic_reassignments(topic_name: TopicName, links: Linked, reach: Reached) -> Fields:
    """Its partitions that are on their way to other brokers."""
    reach.topics.topic(topic_name)
    at = ["topics", topic_name, "partitions", "-", "reassignment"]
    moves = [each for each in _moves(reach) if each.topic == topic_name]
    return links.collection("Reassignment", at, (_reassignment(links, each) for each in moves))


@router.get(
    "/{topic_name}/partitions", response_model=Collection, responses=REFUSALS, summary="A topic's partitions"
)
def partitions(topic_name: TopicName, links: Linked, reach: Reached) -> Fields:
    """With the addresses of their leaders and replicas."""
    found = reach.topics.topic(topic_name)
    return links.collection(
        "Partition",
        ["topics", topic_name, "partitions"],
        (_partition(links, topic_name, each) for each in found.partitions),
    )


@router.get(
    "/{topic_name}/partitions/{partition_id}",
    response_model=Resource,
    responses=REFUSALS,
    summary="A partition",
)
def partition(topic_name: TopicName, partition_id: PartitionId, links: Linked, reach: Reached) -> Fields:
    """Who leads it."""
    return _partition(links, topic_name, the_partition(reach, topic_name, partition_id))


@router.get(
    "/{topic_name}/partitions/{partition_id}/reassignment",
    response_model=Resource,
    responses=REFUSALS,
    summary="A partition's move",
)
def reassignment(topic_name: TopicName, partition_id: PartitionId, links: Linked, reach: Reached) -> Fields:
    """If it is on its way to other brokers."""
    the_partition(reach, topic_name, partition_id)
    for each in _moves(reach):
        if each.topic_partition == (topic_name, partition_id):
            return _reassignment(links, each)
    raise Problem(HTTPStatus.NOT_FOUND, 404, f"{topic_name}-{partition_id} is not being moved")


@router.get(
    "/{topic_name}/partitions/{partition_id}/replicas",
    response_model=Collection,
    responses=REFUSALS,
    summary="A partition's replicas",
)
def replicas(topic_name: TopicName, partition_id: PartitionId, links: Linked, reach: Reached) -> Fields:
    """Which brokers have it, which of them leads, which are in sync."""
    found = the_partition(reach, topic_name, partition_id)
    at = ["topics", topic_name, "partitions", partition_id, "replicas"]
    return links.collection(
        "Replica", at, (_replica(links, topic_name, found, each) for each in found.replicas)
    )


@router.get(
    "/{topic_name}/partitions/{partition_id}/replicas/{broker_id}",
    response_model=Resource,
    responses=REFUSALS,
    summary="A replica",
)
def one_replica(
    topic_name: TopicName, partition_id: PartitionId, broker_id: BrokerId, links: Linked, reach: Reached
) -> Fields:
    """Whether it leads, and whether it is in sync."""
    found = the_partition(reach, topic_name, partition_id)
    if broker_id not in found.replicas:
        said = f"{topic_name}-{partition_id} is not on broker {broker_id}, only on {_listed(found.replicas)}"
        raise Problem(HTTPStatus.NOT_FOUND, 404, said)
    return _replica(links, topic_name, found, broker_id)


def replica(
    links: Links, place: TopicPartition, broker_id: int, *, leader: int | None, in_sync: Some[int]
) -> Fields:
    """A copy of a partition on a broker."""
    topic, index = place
    return links.resource(
        "Replica",
        ["topics", topic, "partitions", index, "replicas", broker_id],
        f"topic={topic}/partition={index}/replica={broker_id}",
        {
            "topic_name": topic,
            "partition_id": index,
            "broker_id": broker_id,
            "is_leader": broker_id == leader,
            "is_in_sync": broker_id in in_sync,
            "broker": links.related("brokers", broker_id),
        },
    )


def _replica(links: Links, topic: str, found: Partition, broker_id: int) -> Fields:
    place = TopicPartition(topic, found.index)
    return replica(links, place, broker_id, leader=found.leader, in_sync=found.in_sync)


def _partition(links: Links, topic: str, found: Partition) -> Fields:
    at = ["topics", topic, "partitions", found.index]
    leader: Fields = {}
    if found.leader is not None:
        leader = {"leader": links.related(*at, "replicas", found.leader)}
    return links.resource(
        "Partition",
        at,
        f"topic={topic}/partition={found.index}",
        {
            "topic_name": topic,
            "partition_id": found.index,
            **leader,
            "replicas": links.related(*at, "replicas"),
            "reassignment": links.related(*at, "reassignment"),
        },
    )


def _reassignment(links: Links, found: Reassignment) -> Fields:
    at = ["topics", found.topic, "partitions", found.partition]
    return links.resource(
        "Reassignment",
        [*at, "reassignment"],
        f"topic={found.topic}/partition={found.partition}/reassignment",
        {
            "topic_name": found.topic,
            "partition_id": found.partition,
            "adding_replicas": found.adding,
            "removing_replicas": found.removing,
            "replicas": links.related(*at, "replicas"),
        },
    )


def _moves(reach: Reach) -> Sequence[Reassignment]:
    with reach.cluster() as cluster:
        return cluster.reassignments()


def _listed(brokers: Some[int]) -> str:
    return ", ".join(map(str, brokers))
