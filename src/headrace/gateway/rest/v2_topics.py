"""REST proxy, v2: topics, their partitions and offsets, and brokers."""

from typing import Any

from fastapi import APIRouter

from headrace.client.admin.topics import Partition, Topic
from headrace.client.errors import NoSuchTopic, Unreachable
from headrace.gateway.problems import Problem
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import PartitionId, TopicName
from headrace.gateway.rest.media import PLAIN_TOO, V2JSON, V2Route, v2_answers
from headrace.gateway.rest.topic_cache import no_partition

router = APIRouter(
    tags=["REST proxy v2"],
    route_class=V2Route,
    default_response_class=V2JSON,
    responses=PLAIN_TOO | v2_answers(400, 404, 406, 503),
)


@router.get("/topics")
def topics(reach: ReachDep) -> list[str]:
    """Return the names of all topics, internal ones included."""
    return reach.topics.names()


@router.get("/topics/{name}")
def topic(name: TopicName, reach: ReachDep) -> dict[str, Any]:
    """Return the topic's settings and partitions."""
    found = reach.topics.topic(name)
    configs = {config.name: config.value for config in reach.topics.configs(name)}
    return {"name": found.name, "configs": configs, "partitions": list(map(_partition, found.partitions))}


@router.get("/topics/{name}/partitions")
def partitions(name: TopicName, reach: ReachDep) -> list[dict[str, Any]]:
    """Return leader, replicas and ISR of each partition."""
    return [_partition(each) for each in reach.topics.topic(name).partitions]


@router.get("/topics/{name}/partitions/{partition_id}")
def partition(name: TopicName, partition_id: PartitionId, reach: ReachDep) -> dict[str, Any]:
    """Return leader, replicas and ISR of the partition."""
    return _partition(get_partition(reach, name, partition_id))


@router.get("/topics/{name}/partitions/{partition_id}/offsets")
def offsets(name: TopicName, partition_id: PartitionId, reach: ReachDep) -> dict[str, int]:
    """Return the log start offset, and the offset that the next record gets."""
    found = _partition_in(reach.topics.in_full(name), partition_id)
    if found.leader is None:
        raise Problem(40404, f"{name}-{partition_id} has no leader at the moment")
    if found.start_offset is None or found.next_offset is None:
        raise Unreachable(f"broker {found.leader}, the leader of {name}-{partition_id}, does not answer")
    return {"beginning_offset": found.start_offset, "end_offset": found.next_offset}


@router.get("/brokers")
def brokers(reach: ReachDep) -> dict[str, list[int]]:
    """Return the ids of all brokers that are alive."""
    return {"brokers": sorted(broker.node_id for broker in reach.metadata().brokers)}


def get_partition(reach: Reach, topic: str, index: int) -> Partition:
    """Return a partition; raise a Problem if the topic does not have it, NoSuchTopic if there is no topic."""
    return _partition_in(reach.topics.topic(topic), index)


def _partition_in(topic: Topic, index: int) -> Partition:
    if not topic.partitions:
        raise NoSuchTopic(topic.name)
    by_index = {each.index: each for each in topic.partitions}
    if index not in by_index:
        raise no_partition(topic.name, index, max(by_index) + 1)
    return by_index[index]


def _partition(found: Partition) -> dict[str, Any]:
    return {
        "partition": found.index,
        "leader": -1 if found.leader is None else found.leader,
        "replicas": [
            {"broker": replica, "leader": replica == found.leader, "in_sync": replica in found.in_sync}
            for replica in found.replicas
        ],
    }
