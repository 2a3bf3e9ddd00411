"""REST proxy, v3: the cluster, its brokers, and topics with their partitions, replicas and reassignments."""

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field, StrictBool, StrictStr
from starlette.concurrency import run_in_threadpool

from headrace.client.admin.topics import Partition, Topic
from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.reading import read_partitions
from headrace.gateway.admin.brokers import one_broker
from headrace.gateway.admin.cluster import reassignments as in_progress
from headrace.gateway.admin.topics import delete_topic, new_topic
from headrace.gateway.problems import Problem, answers
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest import v3_resources
from headrace.gateway.rest.bodies import (
    PARTITIONS,
    SETTINGS,
    Body,
    BrokerId,
    Index,
    Name,
    PartitionId,
    TopicName,
)
from headrace.gateway.rest.hub import HubDep
from headrace.gateway.rest.v2_topics import get_partition

clusters_router = APIRouter(prefix="/v3", tags=["REST proxy v3"], route_class=v3_resources.V3Route)
router = v3_resources.V3Router()


@clusters_router.get("/clusters", responses=answers(503))
async def clusters(request: Request, hub: HubDep, reach: ReachDep) -> v3_resources.Collection:
    """Return the gateway's cluster in a list."""
    links = await v3_resources.own_links(request, hub)
    return links.collection("Cluster", [await run_in_threadpool(cluster, reach)])


@router.shows("Cluster")
def cluster(reach: ReachDep) -> v3_resources.Fields:
    """Return the addresses of the cluster's brokers, topics, groups and settings."""
    controller = reach.metadata().controller_id
    return {"controller": v3_resources.Related(("brokers", controller))} if controller >= 0 else {}


@router.lists("Broker")
def brokers(reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the brokers that are alive."""
    found = sorted(reach.metadata().brokers, key=lambda each: each.node_id)
    return [
        {"broker_id": each.node_id, "host": each.host, "port": each.port, "rack": each.rack} for each in found
    ]


@router.shows("Broker")
def broker(broker_id: BrokerId, reach: ReachDep) -> v3_resources.Fields:
    """Return host and port of a broker that is alive."""
    return one_broker({fields["broker_id"]: fields for fields in brokers(reach)}, broker_id)


@router.lists("Replica", "/brokers/{broker_id}/partition-replicas")
def partition_replicas(broker_id: BrokerId, reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the broker's replicas, by topic and partition."""
    broker(broker_id, reach)
    return [
        _replica(*held.topic_partition, broker_id, is_leader=held.leader == broker_id, in_sync=held.in_sync)
        for held in read_partitions(reach.metadata())
        if broker_id in held.replicas
    ]


# These routes come before those of topics, since `-` would be the name of a topic.
@router.lists("Reassignment", "/topics/-/partitions/-/reassignment")
def reassignments(reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the reassignments in progress of all topics."""
    return [_reassignment(found) for found in in_progress(reach)]


@router.lists("Reassignment", "/topics/{topic_name}/partitions/-/reassignment")
def topic_reassignments(topic_name: TopicName, reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the topic's reassignments in progress."""
    reach.topics.topic(topic_name)
    return [_reassignment(found) for found in in_progress(reach) if found.topic == topic_name]


@router.shows("Reassignment")
def reassignment(topic_name: TopicName, partition_id: PartitionId, reach: ReachDep) -> v3_resources.Fields:
    """Return the partition's reassignment if one is in progress."""
    get_partition(reach, topic_name, partition_id)
    for found in in_progress(reach):
        if found.topic_partition == (topic_name, partition_id):
            return _reassignment(found)
    raise Problem(404, f"{topic_name}-{partition_id} is not being reassigned")


def _reassignment(found: Reassignment) -> v3_resources.Fields:
    return {
        "topic_name": found.topic,
        "partition_id": found.partition,
        "adding_replicas": found.adding,
        "removing_replicas": found.removing,
        "replicas": v3_resources.Related(("topics", found.topic, "partitions", found.partition, "replicas")),
    }


class ConfigV3(Body):
    """A setting; null is the brokers' default."""

    name: Name
    value: StrictStr | None = None


class TopicV3(Body):
    """A topic to create. The brokers' defaults apply to what is left out."""

    topic_name: Name
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
    partitions_count: Annotated[int, Field(strict=True, ge=1, le=PARTITIONS)]


@router.lists("Topic")
def topics(reach: ReachDep) -> list[v3_resources.Fields]:
    """Return all topics by name, internal ones included."""
    known = {topic.name: topic for topic in reach.metadata().topics if topic.name is not None}
    return [
        {
            "topic_name": name,
            "is_internal": topic.is_internal,
            "replication_factor": max((len(each.replica_nodes) for each in topic.partitions), default=0),
            "partitions_count": len(topic.partitions),
        }
        for name, topic in sorted(known.items())
    ]


@router.post(
    "/topics",
    status_code=201,
    responses={200: {"model": v3_resources.Resource, "description": "The topic could be created"}},
)
def create_topic(
    body: TopicV3, links: v3_resources.LinksDep, reach: ReachDep, response: Response
) -> v3_resources.Resource:
    """Return the topic; with `validate_only` and status 200, the topic that would be created."""
    configs = {config.name: config.value for config in body.configs if config.value is not None}
    partitions, replicas = body.partitions_count, body.replication_factor
    if not body.validate_only:
        return links.resource(
            "Topic", _topic(new_topic(reach, body.topic_name, partitions, replicas, configs))
        )
    response.status_code = 200
    checked = reach.topics.check(body.topic_name, partitions=partitions, replicas=replicas, configs=configs)
    fields = {
        "topic_name": body.topic_name,
        "is_internal": False,
        "replication_factor": checked.replication_factor,
        "partitions_count": checked.num_partitions,
    }
    return links.resource("Topic", fields)


@router.shows("Topic")
def topic(topic_name: TopicName, reach: ReachDep) -> v3_resources.Fields:
    """Return the numbers of partitions and replicas."""
    return _topic(reach.topics.topic(topic_name))


@router.patch("/topics/{topic_name}")
def add_partitions(
    topic_name: TopicName, body: PartitionsV3, links: v3_resources.LinksDep, reach: ReachDep
) -> v3_resources.Resource:
    """Raise the number of partitions, which cannot be lowered again."""
    reach.admin.add_partitions(topic_name, body.partitions_count)
    return links.resource("Topic", topic(topic_name, reach))


@router.delete("/topics/{topic_name}", status_code=204)
def delete(topic_name: TopicName, _links: v3_resources.LinksDep, reach: ReachDep) -> Response:
    """Delete the topic and all its records."""
    return delete_topic(topic_name, reach)


def _topic(found: Topic) -> v3_resources.Fields:
    return {
        "topic_name": found.name,
        "is_internal": found.internal,
        "replication_factor": found.replicas,
        "partitions_count": len(found.partitions),
    }


@router.lists("Partition")
def partitions(topic_name: TopicName, reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the addresses of each partition's leader and replicas."""
    return [_partition(topic_name, found) for found in reach.topics.topic(topic_name).partitions]


@router.shows("Partition")
def partition(topic_name: TopicName, partition_id: PartitionId, reach: ReachDep) -> v3_resources.Fields:
    """Return the addresses of the partition's leader and replicas."""
    return _partition(topic_name, get_partition(reach, topic_name, partition_id))


@router.lists("Replica")
def replicas(topic_name: TopicName, partition_id: PartitionId, reach: ReachDep) -> list[v3_resources.Fields]:
    """Return the partition's replicas, and which of them are the leader and in the ISR."""
    found = get_partition(reach, topic_name, partition_id)
    return [
        _replica(topic_name, partition_id, each, is_leader=each == found.leader, in_sync=found.in_sync)
        for each in found.replicas
    ]


@router.shows("Replica")
def replica(
    topic_name: TopicName, partition_id: PartitionId, broker_id: BrokerId, reach: ReachDep
) -> v3_resources.Fields:
    """Return whether the replica is the leader, and whether it is in the ISR."""
    by_broker = {each["broker_id"]: each for each in replicas(topic_name, partition_id, reach)}
    if broker_id not in by_broker:
        ids = ", ".join(map(str, by_broker))
        raise Problem(404, f"{topic_name}-{partition_id} has no replica on broker {broker_id}, only on {ids}")
    return by_broker[broker_id]


def _partition(topic_name: str, found: Partition) -> v3_resources.Fields:
    fields: v3_resources.Fields = {"topic_name": topic_name, "partition_id": found.index}
    if found.leader is not None:
        path = ("topics", topic_name, "partitions", found.index, "replicas", found.leader)
        fields["leader"] = v3_resources.Related(path)
    return fields


def _replica(
    topic_name: str, index: int, broker_id: int, *, is_leader: bool, in_sync: tuple[int, ...]
) -> v3_resources.Fields:
    return {
        "topic_name": topic_name,
        "partition_id": index,
        "broker_id": broker_id,
        "is_leader": is_leader,
        "is_in_sync": broker_id in in_sync,
        "broker": v3_resources.Related(("brokers", broker_id)),
    }
