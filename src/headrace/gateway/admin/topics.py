"""Topics: list, create, describe, change and delete."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import APIRouter, Query, Response
from pydantic import Field

from headrace.client.admin.topics import Config, Partition, Topic
from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.topic_overview import TopicOverview, read_topics, total
from headrace.client.errors import NoSuchTopic
from headrace.gateway.admin.brokers import ConfigsBody, check_changes
from headrace.gateway.problems import answers, bad_request
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest import bodies
from headrace.protocol.ids import TopicPartition

router = APIRouter(tags=["topics"], responses=answers(400, 404, 503))


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionAnswer(Partition):
    """A partition; offsets and bytes are null while its leader does not answer."""

    records: int | None
    size_bytes: int | None  # of the leader's replica


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAnswer:
    """A topic with its partitions and its own settings.

    Records and bytes of the topic are null while those of a partition are not known.
    """

    name: str
    topic_id: str
    internal: bool
    replicas: int
    records: int | None
    size_bytes: int | None
    disk_bytes: int | None
    under_replicated: int
    partitions: tuple[PartitionAnswer, ...]
    configs: dict[str, str]


@router.get("/topics")
def topics(
    reach: ReachDep,
    *,
    internal: Annotated[bool, Query(description="Include internal topics.")] = True,
    partitions: Annotated[
        bool, Query(description="Also return leader, replicas and next offset of each partition.")
    ] = False,
) -> list[TopicOverview]:
    """Return all topics by name, with partitions, records, bytes and retention.

    `records` counts offsets: a compacted topic has fewer records.
    """
    found = read_topics(reach.brokers).complete(reach.brokers, by_partition=partitions)
    return [each for each in found if internal or not each.internal]


class TopicBody(bodies.Body):
    """A topic to create. The brokers' defaults apply to what is left out."""

    name: bodies.Name
    partitions: Annotated[int | None, Field(strict=True, ge=1, le=bodies.PARTITIONS)] = None
    replicas: Annotated[int | None, Field(strict=True, ge=1, le=1000)] = None
    configs: Annotated[
        dict[bodies.Name, bodies.Value], Field(default_factory=dict, max_length=bodies.SETTINGS)
    ]


@router.post("/topics", status_code=201, responses=answers(409))
def create_topic(body: TopicBody, reach: ReachDep) -> TopicAnswer:
    """Create a topic, and return it as `GET /topics/{name}` does."""
    made = new_topic(reach, body.name, body.partitions, body.replicas, bodies.settings(body.configs))
    return topic_answer(reach, made)


def new_topic(
    reach: Reach, name: str, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
) -> Topic:
    """Create a topic; a Problem (400) if no topic can have this name. REST v3 creates topics with it, too."""
    try:
        return reach.admin.create_topic(name, partitions=partitions, replicas=replicas, configs=configs)
    except NoSuchTopic as error:
        raise bad_request(str(error)) from None


@router.get("/topics/{name}")
def topic(name: bodies.TopicName, reach: ReachDep) -> TopicAnswer:
    """Return the topic's own settings, and leader, replicas, ISR, offsets and bytes of its partitions.

    `next_offset` is the offset that the partition's next record gets.
    """
    return topic_answer(reach, reach.topics.in_full(name))


@router.delete("/topics/{name}", status_code=204)
def delete_topic(name: bodies.TopicName, reach: ReachDep) -> Response:
    """Delete the topic and all its records."""
    reach.admin.delete_topic(name)
    return Response(status_code=204)


@router.get("/topics/{name}/configs")
def topic_configs(name: bodies.TopicName, reach: ReachDep) -> list[Config]:
    """Return every setting with its value and source."""
    return reach.topics.configs(name)


@router.patch("/topics/{name}")
@router.patch("/topics/{name}/configs")
@router.put("/topics/{name}/configs")
def alter_topic_configs(name: bodies.TopicName, body: ConfigsBody, reach: ReachDep) -> list[Config]:
    """Change these settings, or none if one is invalid, and return all of them; others stay as they are."""
    check_changes(body.set, body.unset)
    reach.admin.alter_topic_configs(name, sets=bodies.settings(body.set), unsets=body.unset)
    return reach.topics.configs(name)


class PartitionsBody(bodies.Body):
    total: Annotated[int, Field(strict=True, ge=1, le=bodies.PARTITIONS)]


@router.post("/topics/{name}/partitions")
def add_partitions(name: bodies.TopicName, body: PartitionsBody, reach: ReachDep) -> TopicAnswer:
    """Raise the number of partitions, which cannot be lowered again; keys then go to other partitions."""
    reach.admin.add_partitions(name, body.total)
    return topic_answer(reach, reach.topics.in_full(name))


class RecordsBody(bodies.Body):
    """The new log start offset of each partition; -1 is its end, so that no record is left."""

    before: Annotated[
        dict[
            Annotated[int, Field(ge=0, le=bodies.INT32)],
            bodies.Offset | Annotated[int, Field(strict=True, ge=-1, le=-1)],
        ],
        Field(min_length=1, max_length=bodies.PARTITIONS),
    ]


@router.delete("/topics/{name}/records")
def delete_topic_records(name: bodies.TopicName, body: RecordsBody, reach: ReachDep) -> list[dict[str, int]]:
    """Delete the records before an offset of each partition; disk space is freed segment by segment."""
    offsets = reach.topics.delete_records(name, body.before)
    return [{"partition": index, "start_offset": offset} for index, offset in sorted(offsets.items())]


def topic_answer(reach: Reach, found: Topic) -> TopicAnswer:
    indexes = [partition.index for partition in found.partitions]
    replica_bytes = sizes(read_log_dirs(reach.brokers, reach.brokers.nodes(), {found.name: indexes}))
    partitions = tuple(
        PartitionAnswer(
            **asdict(partition),
            records=None
            if partition.start_offset is None or partition.next_offset is None
            else partition.next_offset - partition.start_offset,
            size_bytes=None
            if partition.leader is None
            else replica_bytes.get((partition.leader, TopicPartition(found.name, partition.index))),
        )
        for partition in found.partitions
    )
    return TopicAnswer(
        name=found.name,
        topic_id=found.topic_id,
        internal=found.internal,
        replicas=found.replicas,
        records=total(partition.records for partition in partitions),
        size_bytes=total(partition.size_bytes for partition in partitions),
        disk_bytes=total(
            replica_bytes.get((broker, TopicPartition(found.name, partition.index)))
            for partition in partitions
            for broker in partition.replicas
        ),
        under_replicated=sum(
            partition.leader is None or len(partition.in_sync) < len(partition.replicas)
            for partition in partitions
        ),
        partitions=partitions,
        configs=dict(found.configs),
    )
