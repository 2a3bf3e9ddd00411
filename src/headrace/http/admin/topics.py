"""Topics: every one in a line, one in full, made, changed and deleted."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from headrace.client.admin.topics import Config, Topic
from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.topic_overview import TopicOverview, read_overview
from headrace.http.admin.brokers import ConfigsBody, check
from headrace.http.gateway.asking import (
    INT32,
    PLACES,
    SETTINGS,
    Body,
    Index,
    Name,
    Offset,
    TopicName,
    Value,
    example,
    settings,
)
from headrace.http.problems import answers, naming_a_new_one
from headrace.http.reach import Reach, Reached
from headrace.protocol.ids import TopicPartition

router = APIRouter(tags=["topics"])
_REFUSALS = answers(HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE)
_CREATION = answers(HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.SERVICE_UNAVAILABLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAnswer:
    """A partition; offsets and bytes are null while nobody who would know answers."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None
    next_offset: int | None  # which the next record gets
    records: int | None
    size_bytes: int | None  # of the leader's copy


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAnswer:
    """A topic with its partitions and what it sets itself."""

    name: str
    topic_id: str
    internal: bool
    replicas: int
    records: int
    size_bytes: int
    disk_bytes: int
    under_replicated: int
    partitions: tuple[PartitionAnswer, ...]
    configs: dict[str, str]


@router.get("/topics", responses=answers(HTTPStatus.SERVICE_UNAVAILABLE), summary="Every topic")
def topics(
    reach: Reached,
    *,
    internal: Annotated[bool, Query(description="Also those that the cluster keeps for itself.")] = True,
    partitions: Annotated[
        bool, Query(description="Also each partition's leader, replicas and next offset: `by_partition`.")
    ] = False,
) -> list[TopicOverview]:
    """By name, each with its partitions, records, bytes and what it keeps.

    `records` are offsets that are in the log: where it is compacted, or has transactions, there are fewer.
    """
    found = read_overview(reach.live, by_partition=partitions)
    return [each for each in found if internal or not each.internal]


class TopicBody(Body):
    """A topic to be made. What is left out is as the brokers are configured."""

    model_config = example(name="orders", partitions=3, configs={"retention.ms": 86400000})

    name: Annotated[Name, Field(examples=["orders"])]
    partitions: Annotated[int | None, Field(strict=True, ge=1, le=PLACES)] = None
    replicas: Annotated[int | None, Field(strict=True, ge=1, le=1000)] = None
    configs: Annotated[dict[Name, Value], Field(default_factory=dict, max_length=SETTINGS)]


@router.post("/topics", status_code=HTTPStatus.CREATED, responses=_CREATION, summary="Make a topic")
def create_topic(asked: TopicBody, reach: Reached) -> TopicAnswer:
    """Returns the topic as `GET /topics/{name}` does."""
    with naming_a_new_one():
        made = reach.admin.create_topic(
            asked.name,
            partitions=asked.partitions,
            replicas=asked.replicas,
            configs=settings(asked.configs),
        )
    return in_full(reach, made)


@router.get("/topics/{name}", responses=_REFUSALS, summary="A topic")
def topic(name: TopicName, reach: Reached) -> TopicAnswer:
    """Its partitions with leaders, replicas, who is in sync, offsets and bytes; and its own settings.

    `next_offset` of a partition is what its next record will get.
    """
    return in_full(reach, reach.topics.in_full(name))


@router.delete(
    "/topics/{name}", status_code=HTTPStatus.NO_CONTENT, responses=_REFUSALS, summary="Delete a topic"
)
def delete_topic(name: TopicName, reach: Reached) -> Response:
    """With everything in it."""
    reach.admin.delete_topic(name)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get("/topics/{name}/configs", responses=_REFUSALS, summary="A topic's settings")
def topic_configs(name: TopicName, reach: Reached) -> list[Config]:
    """Every setting, its value, and whether the topic, a broker or nobody has set it."""
    return reach.topics.configs(name)


@router.patch("/topics/{name}", responses=_REFUSALS, summary="Change a topic's settings")
@router.patch("/topics/{name}/configs", responses=_REFUSALS, summary="Change a topic's settings")
@router.put("/topics/{name}/configs", responses=_REFUSALS, summary="Change a topic's settings")
def alter_topic_configs(name: TopicName, asked: ConfigsBody, reach: Reached) -> list[Config]:
    """All of what is asked for or none; what is not named stays as it is. Returns every setting."""
    check(asked)
    reach.admin.alter_topic_configs(name, sets=settings(asked.set), unsets=asked.unset)
    return reach.topics.configs(name)


class PartitionsBody(Body):
    """How many partitions there are to be."""

    total: Annotated[int, Field(strict=True, ge=1, le=PLACES, examples=[12])]


@router.post("/topics/{name}/partitions", responses=_REFUSALS, summary="Add partitions")
def add_partitions(name: TopicName, asked: PartitionsBody, reach: Reached) -> TopicAnswer:
    """Keys go to other partitions from then on; there is no way back to fewer."""
    reach.admin.add_partitions(name, asked.total)
    return in_full(reach, reach.topics.in_full(name))


class RecordsBody(Body):
    """Where each partition is to begin; -1 is its end, so that nothing is left of it."""

    before: Annotated[
        dict[
            Annotated[int, Field(ge=0, le=INT32)], Offset | Annotated[int, Field(strict=True, ge=-1, le=-1)]
        ],
        Field(min_length=1, max_length=PLACES, examples=[{"0": 1000}]),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begins:
    """Where a partition begins now."""

    partition: Index
    start_offset: int


@router.delete("/topics/{name}/records", responses=_REFUSALS, summary="Delete old records")
def delete_topic_records(name: TopicName, asked: RecordsBody, reach: Reached) -> list[Begins]:
    """Those before an offset, partition by partition; the space is freed segment by segment."""
    begins = reach.topics.delete_records(name, asked.before)
    return [Begins(partition=index, start_offset=offset) for index, offset in sorted(begins.items())]


def in_full(reach: Reach, found: Topic) -> TopicAnswer:
    """The topic with what it takes on disks."""
    indexes = [each.index for each in found.partitions]
    taken = sizes(read_log_dirs(reach.live, reach.live.nodes(), {found.name: indexes}))
    partitions = tuple(
        PartitionAnswer(
            index=each.index,
            leader=each.leader,
            replicas=each.replicas,
            in_sync=each.in_sync,
            start_offset=each.start_offset,
            next_offset=each.next_offset,
            records=_length(each.start_offset, each.next_offset),
            size_bytes=None
            if each.leader is None
            else taken.get((each.leader, TopicPartition(found.name, each.index))),
        )
        for each in found.partitions
    )
    return TopicAnswer(
        name=found.name,
        topic_id=found.topic_id,
        internal=found.internal,
        replicas=found.replicas,
        records=sum(each.records or 0 for each in partitions),
        size_bytes=sum(each.size_bytes or 0 for each in partitions),
        disk_bytes=sum(taken.values()),
        under_replicated=sum(len(each.in_sync) < len(each.replicas) for each in partitions),
        partitions=partitions,
        configs=dict(found.configs),
    )


def _length(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start
