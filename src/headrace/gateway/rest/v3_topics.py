"""REST proxy, v3: topics, their partitions, replicas and reassignments."""

from collections.abc import Collection as AnyCollection
from typing import Annotated

from fastapi import Response
from pydantic import Field, StrictBool, StrictStr

from headrace.client.admin.topics import Partition, Topic
from headrace.client.cluster.moves import Reassignment
from headrace.gateway.admin.cluster import reassignments as in_progress
from headrace.gateway.admin.topics import new_topic
from headrace.gateway.problems import Problem
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import (
    PARTITIONS,
    SETTINGS,
    Body,
    BrokerId,
    Index,
    Name,
    PartitionId,
    TopicName,
    example,
)
from headrace.gateway.rest.v2_topics import get_partition
from headrace.gateway.rest.v3_resources import Collection, Fields, Links, LinksDep, Resource, v3_router
from headrace.protocol.ids import TopicPartition

router = v3_router("/topics")


class ConfigV3(Body):
    """A setting; null is the brokers' default."""

    name: Name
    value: StrictStr | None = None


class TopicV3(Body):
    """A topic to create. The brokers' defaults apply to what is left out."""

    model_config = example(topic_name="orders", partitions_count=3)

    topic_name: Annotated[Name, Field(examples=["orders"])]
    partitions_count: Annotated[int | None, Field(strict=True, ge=1, le=PARTITIONS)] = None
    replication_factor: Annotated[int | None, Field(strict=True, ge=1, le=1000)] = None
    replicas_assignments: Annotated[
        dict[str, list[Index]] | None,
        Field(description="Not supported: the controller assigns replicas.", max_length=0),
    ] = None
    configs: Annotated[list[ConfigV3], Field(default_factory=list, max_length=SETTINGS)]
    validate_only: Annotated[
        StrictBool, Field(description="Return the topic that would be created, and create nothing.")
    ] = False


class PartitionsV3(Body):
    """The new number of partitions."""

    partitions_count: Annotated[int, Field(strict=True, ge=1, le=PARTITIONS)]


# -- reassignments: before topics, since `-` would be the name of a topic -----------------------------


@router.get("/-/partitions/-/reassignment", summary="List reassignments")
def reassignments(links: LinksDep, reach: ReachDep) -> Collection:
    """Return the reassignments in progress of all topics."""
    at = ["topics", "-", "partitions", "-", "reassignment"]
    found = (_reassignment(links, each) for each in in_progress(reach))
    return links.collection("Reassignment", at, found)


@router.get("/{topic_name}/partitions/-/reassignment", summary="List the reassignments of a topic")
def topic_reassignments(topic_name: TopicName, links: LinksDep, reach: ReachDep) -> Collection:
    """Return the topic's reassignments in progress."""
    reach.topics.topic(topic_name)
    at = ["topics", topic_name, "partitions", "-", "reassignment"]
    found = [each for each in in_progress(reach) if each.topic == topic_name]
    return links.collection("Reassignment", at, (_reassignment(links, each) for each in found))


@router.get("/{topic_name}/partitions/{partition_id}/reassignment", summary="Get a partition's reassignment")
def reassignment(
    topic_name: TopicName, partition_id: PartitionId, links: LinksDep, reach: ReachDep
) -> Resource:
    """Return the partition's reassignment if one is in progress."""
    get_partition(reach, topic_name, partition_id)
    for each in in_progress(reach):
        if each.topic_partition == (topic_name, partition_id):
            return _reassignment(links, each)
    raise Problem(404, f"{topic_name}-{partition_id} is not being reassigned")


def _reassignment(links: Links, found: Reassignment) -> Resource:
    at = ["topics", found.topic, "partitions", found.partition]
    return links.resource(
        "Reassignment",
        [*at, "reassignment"],
        topic_name=found.topic,
        partition_id=found.partition,
        adding_replicas=found.adding,
        removing_replicas=found.removing,
        replicas=links.related(*at, "replicas"),
    )


# -- topics ----------------------------------------------------------------------------------------


@router.get("", summary="List topics")
def topics(links: LinksDep, reach: ReachDep) -> Collection:
    """Return all topics by name, internal ones included."""
    known = {topic.name: topic for topic in reach.metadata().topics if topic.name is not None}
    resources = (
        _topic(
            links,
            name,
            internal=topic.is_internal,
            partitions=len(topic.partitions),
            replicas=max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
        )
        for name, topic in sorted(known.items())
    )
    return links.collection("Topic", ["topics"], resources)


@router.post(
    "",
    status_code=201,
    responses={200: {"model": Resource, "description": "The topic could be created"}},
    summary="Create a topic",
)
def create_topic(body: TopicV3, links: LinksDep, reach: ReachDep, response: Response) -> Resource:
    """Return the topic; with `validate_only` and status 200, the topic that would be created."""
    configs = {config.name: config.value for config in body.configs if config.value is not None}
    if not body.validate_only:
        made = new_topic(reach, body.topic_name, body.partitions_count, body.replication_factor, configs)
        return _described(links, made)
    response.status_code = 200
    checked = reach.topics.check(
        body.topic_name, partitions=body.partitions_count, replicas=body.replication_factor, configs=configs
    )
    return _topic(
        links,
        body.topic_name,
        internal=False,
        partitions=checked.num_partitions,
        replicas=checked.replication_factor,
    )


@router.get("/{topic_name}", summary="Get a topic")
def topic(topic_name: TopicName, links: LinksDep, reach: ReachDep) -> Resource:
    """Return the numbers of partitions and replicas."""
    return _described(links, reach.topics.topic(topic_name))


@router.patch("/{topic_name}", summary="Add partitions")
def add_partitions(topic_name: TopicName, body: PartitionsV3, links: LinksDep, reach: ReachDep) -> Resource:
    """Raise the number of partitions, which cannot be lowered again."""
    reach.admin.add_partitions(topic_name, body.partitions_count)
    return _described(links, reach.topics.topic(topic_name))


@router.delete("/{topic_name}", status_code=204, summary="Delete a topic")
def delete_topic(topic_name: TopicName, _links: LinksDep, reach: ReachDep) -> Response:
    """Delete the topic and all its records."""
    reach.admin.delete_topic(topic_name)
    return Response(status_code=204)


def _described(links: Links, found: Topic) -> Resource:
    count = len(found.partitions)
    return _topic(links, found.name, internal=found.internal, partitions=count, replicas=found.replicas)


def _topic(links: Links, name: str, *, internal: bool, partitions: int, replicas: int) -> Resource:
    return links.resource(
        "Topic",
        ["topics", name],
        topic_name=name,
        is_internal=internal,
        replication_factor=replicas,
        partitions_count=partitions,
    )


# -- partitions and replicas -----------------------------------------------------------------------


@router.get("/{topic_name}/partitions", summary="List the partitions of a topic")
def partitions(topic_name: TopicName, links: LinksDep, reach: ReachDep) -> Collection:
    """Return the addresses of each partition's leader and replicas."""
    found = reach.topics.topic(topic_name).partitions
    at = ["topics", topic_name, "partitions"]
    return links.collection("Partition", at, (_partition(links, topic_name, each) for each in found))


@router.get("/{topic_name}/partitions/{partition_id}", summary="Get a partition")
def partition(topic_name: TopicName, partition_id: PartitionId, links: LinksDep, reach: ReachDep) -> Resource:
    """Return the addresses of the partition's leader and replicas."""
    return _partition(links, topic_name, get_partition(reach, topic_name, partition_id))


@router.get("/{topic_name}/partitions/{partition_id}/replicas", summary="List the replicas of a partition")
def replicas(
    topic_name: TopicName, partition_id: PartitionId, links: LinksDep, reach: ReachDep
) -> Collection:
    """Return the partition's replicas, and which of them are the leader and in the ISR."""
    found = get_partition(reach, topic_name, partition_id)
    at = ["topics", topic_name, "partitions", partition_id, "replicas"]
    return links.collection(
        "Replica", at, (_replica_of(links, topic_name, found, each) for each in found.replicas)
    )


@router.get("/{topic_name}/partitions/{partition_id}/replicas/{broker_id}", summary="Get a replica")
def one_replica(
    topic_name: TopicName, partition_id: PartitionId, broker_id: BrokerId, links: LinksDep, reach: ReachDep
) -> Resource:
    """Return whether the replica is the leader, and whether it is in the ISR."""
    found = get_partition(reach, topic_name, partition_id)
    if broker_id not in found.replicas:
        ids = ", ".join(map(str, found.replicas))
        raise Problem(404, f"{topic_name}-{partition_id} has no replica on broker {broker_id}, only on {ids}")
    return _replica_of(links, topic_name, found, broker_id)


def replica(
    links: Links, partition: TopicPartition, broker_id: int, leader: int | None, in_sync: AnyCollection[int]
) -> Resource:
    """Return the resource of a partition's replica on a broker."""
    topic_name, index = partition
    return links.resource(
        "Replica",
        ["topics", topic_name, "partitions", index, "replicas", broker_id],
        topic_name=topic_name,
        partition_id=index,
        broker_id=broker_id,
        is_leader=broker_id == leader,
        is_in_sync=broker_id in in_sync,
        broker=links.related("brokers", broker_id),
    )


def _replica_of(links: Links, topic_name: str, found: Partition, broker_id: int) -> Resource:
    return replica(links, TopicPartition(topic_name, found.index), broker_id, found.leader, found.in_sync)


def _partition(links: Links, topic_name: str, found: Partition) -> Resource:
    at = ["topics", topic_name, "partitions", found.index]
    leader: Fields = {}
    if found.leader is not None:
        leader = {"leader": links.related(*at, "replicas", found.leader)}
    return links.resource("Partition", at, topic_name=topic_name, partition_id=found.index, **leader)
