"""REST proxy, v2: topics, their partitions and offsets, and brokers."""

from dataclasses import asdict, dataclass
from http import HTTPStatus

from fastapi import APIRouter, Response

from headrace.client.admin.topics import Partition, Topic
from headrace.client.errors import NoSuchTopic, Unreachable
from headrace.http.gateway.asking import PartitionId, TopicName
from headrace.http.gateway.known_topics import NO_PARTITION
from headrace.http.gateway.media import AnswerType
from headrace.http.gateway.plain_json import json_answer
from headrace.http.gateway.v2_answers import v2
from headrace.http.problems import Problem
from headrace.http.reach import SILENCE_S, Reach, Reached

router = APIRouter(tags=["REST proxy v2"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A copy of a partition, and the broker it is on."""

    broker: int
    leader: bool
    in_sync: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionV2:
    """A partition; its leader is -1 while it has none."""

    partition: int
    leader: int
    replicas: tuple[Replica, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicV2:
    """A topic with all its settings."""

    name: str
    configs: dict[str, str | None]
    partitions: tuple[PartitionV2, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsV2:
    """Where a partition begins, and the offset that its next record gets."""

    beginning_offset: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersV2:
    """The ids of brokers that are alive."""

    brokers: list[int]


@router.get("/topics", response_model=list[str], responses=v2(), summary="Names of all topics")
def topics(media_type: AnswerType, reach: Reached) -> Response:
    """By name; those that the cluster keeps for itself among them."""
    return json_answer(reach.topics.names(), media_type=media_type)


@router.get(
    "/topics/{name}",
    response_model=TopicV2,
    responses=v2(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    summary="A topic",
)
def topic(name: TopicName, media_type: AnswerType, reach: Reached) -> Response:
    """Its settings and partitions."""
    found = reach.topics.topic(name)
    answer = TopicV2(
        name=found.name,
        configs={each.name: each.value for each in reach.topics.configs(name)},
        partitions=tuple(map(_partition, found.partitions)),
    )
    return json_answer(asdict(answer), media_type=media_type)


@router.get(
    "/topics/{name}/partitions",
    response_model=list[PartitionV2],
    responses=v2(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    summary="A topic's partitions",
)
def partitions(name: TopicName, media_type: AnswerType, reach: Reached) -> Response:
    """With leaders, replicas, and who is in sync."""
    found = reach.topics.topic(name)
    return json_answer([asdict(_partition(each)) for each in found.partitions], media_type=media_type)


@router.get(
    "/topics/{name}/partitions/{partition_id}",
    response_model=PartitionV2,
    responses=v2(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    summary="A partition",
)
def partition(name: TopicName, partition_id: PartitionId, media_type: AnswerType, reach: Reached) -> Response:
    """Who leads it, and its replicas."""
    return json_answer(asdict(_partition(the_partition(reach, name, partition_id))), media_type=media_type)


@router.get(
    "/topics/{name}/partitions/{partition_id}/offsets",
    response_model=OffsetsV2,
    responses=v2(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND),
    summary="Where a partition begins and ends",
)
def offsets(name: TopicName, partition_id: PartitionId, media_type: AnswerType, reach: Reached) -> Response:
    """The first offset there is, and the next that will be given out."""
    found = _in(reach.topics.in_full(name), partition_id)
    if found.leader is None:
        raise Problem(HTTPStatus.NOT_FOUND, 40404, f"{name}-{partition_id} has no leader at the moment")
    if found.start_offset is None or found.next_offset is None:
        raise Unreachable(f"broker {found.leader}, which leads {name}-{partition_id}, does not answer")
    answer = OffsetsV2(beginning_offset=found.start_offset, end_offset=found.next_offset)
    return json_answer(asdict(answer), media_type=media_type)


@router.get("/brokers", response_model=BrokersV2, responses=v2(), summary="Ids of all brokers")
def brokers(media_type: AnswerType, reach: Reached) -> Response:
    """Those that are alive."""
    with reach.brokers(SILENCE_S) as asked:
        found = sorted(each.node_id for each in asked.metadata().brokers)
    return json_answer({"brokers": found}, media_type=media_type)


def the_partition(reach: Reach, topic: str, index: int) -> Partition:
    """A partition of a topic; a Problem if the topic is there and the partition is not."""
    return _in(reach.topics.topic(topic), index)


def _in(topic: Topic, index: int) -> Partition:
    if not topic.partitions:
        raise NoSuchTopic(topic.name)
    there = {each.index: each for each in topic.partitions}
    if index not in there:
        said = f"{topic.name} has no partition {index}, only 0 to {max(there)}"
        raise Problem(HTTPStatus.NOT_FOUND, NO_PARTITION, said)
    return there[index]


def _partition(found: Partition) -> PartitionV2:
    return PartitionV2(
        partition=found.index,
        leader=-1 if found.leader is None else found.leader,
        replicas=tuple(
            Replica(broker=each, leader=each == found.leader, in_sync=each in found.in_sync)
            for each in found.replicas
        ),
    )
