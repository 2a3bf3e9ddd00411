"""REST proxy, v2: consumers, which the gateway keeps from one request to the next.

A client creates one, subscribes, reads records again and again, and deletes it. All requests have to go to
the gateway that created the consumer: `base_uri` is its address.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Concatenate, Final, Literal, ParamSpec, TypeVar
from urllib.parse import quote

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import ConfigDict, Field, StrictInt, StrictStr

from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.base import BadValue
from headrace.client.serializers.codecs.plain_json import NotJson, read_json
from headrace.gateway.current import RawRoute, base_url
from headrace.gateway.problems import Problem
from headrace.gateway.rest import media
from headrace.gateway.rest.bodies import INT64, NO_NUL, PARTITIONS, Body, GroupName, Index, Name, Offset
from headrace.gateway.rest.hub import HubDep
from headrace.gateway.rest.instance import ConsumerOptions, Instance, Unreadable
from headrace.protocol.ids import TopicPartition


class ConsumerRoute(media.V2Route, RawRoute):
    """A route of the REST proxy, v2, with names of groups and consumers in its path."""


router = APIRouter(
    tags=["REST proxy v2: consumers"],
    dependencies=[Depends(media.check_json)],
    route_class=ConsumerRoute,
    default_response_class=media.V2JSON,
    responses=media.v2_answers(400, 404, 406, 409, 415, 422, 429, 503),
)

P = ParamSpec("P")
Answer = TypeVar("Answer")

ADDRESS: Final = "/consumers/{group}/instances/{instance}"
_NOTHING: Final[dict[str, Any]] = {"status_code": 204, "response_class": Response}


class ConsumerV2(Body):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: Annotated[StrictStr | None, Field(min_length=1, max_length=200, pattern=NO_NUL)] = None
    format: Literal["binary", "json", "avro", "jsonschema", "protobuf"] = "binary"
    auto_offset_reset: Annotated[Literal["earliest", "latest"], Field(alias="auto.offset.reset")] = "latest"
    auto_commit: Annotated[Literal["true", "false"] | bool, Field(alias="auto.commit.enable")] = True
    min_bytes: Annotated[
        StrictInt, Field(alias="fetch.min.bytes", ge=-1, le=10_000_000, description="-1 is the default.")
    ] = -1
    timeout_ms: Annotated[StrictInt, Field(alias="consumer.request.timeout.ms", ge=0, le=30_000)] = 1000


@router.post("/consumers/{group}", responses=media.PLAIN_TOO)
async def create(
    group: GroupName, request: Request, hub: HubDep, body: ConsumerV2 | None = None
) -> dict[str, str]:
    """Create a consumer, which joins the group with its subscription; it is deleted after 5 idle minutes."""
    given = body or ConsumerV2()
    options = ConsumerOptions(
        format=given.format,
        auto_offset_reset=given.auto_offset_reset,
        auto_commit=given.auto_commit in (True, "true"),
        min_bytes=max(given.min_bytes, 1),
        timeout_ms=given.timeout_ms,
    )
    name = await hub.consume(partial(hub.instances.create, group, given.name, options))
    path = f"consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
    return {"instance_id": name, "base_uri": f"{base_url(request)}{path}"}


@dataclass(frozen=True, slots=True)
class Consumer:
    """The consumer that a path names; the dependency of the routes below."""

    group: GroupName
    instance: Annotated[
        str, Path(description="The consumer's name.", min_length=1, max_length=1000, pattern=NO_NUL)
    ]
    hub: HubDep

    def get(self) -> Instance:
        return self.hub.instances.get(self.group, self.instance)

    async def call(
        self, method: Callable[Concatenate[Instance, P], Answer], *args: P.args, **options: P.kwargs
    ) -> Answer:
        """Return the result of a method of the consumer, which may wait for brokers."""
        return await self.hub.consume(partial(method, self.get(), *args, **options))


ConsumerDep = Annotated[Consumer, Depends()]


@router.delete(ADDRESS, **_NOTHING)
async def delete(consumer: ConsumerDep) -> None:
    """Leave the group; with auto commit, commit the offsets of what was read."""
    hub = consumer.hub
    await hub.consume(partial(hub.instances.delete, consumer.group, consumer.instance))


class SubscriptionV2(Body):
    """Topics, or a pattern of topic names."""

    topics: Annotated[list[Name] | None, Field(min_length=1, max_length=1000)] = None
    topic_pattern: Annotated[StrictStr | None, Field(min_length=1, max_length=1000, pattern=NO_NUL)] = None


class PartitionRefV2(Body):
    topic: Name
    partition: Index


class PartitionsV2(Body):
    partitions: Annotated[list[PartitionRefV2], Field(max_length=PARTITIONS)]

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(partition.topic, partition.partition) for partition in self.partitions]


@router.post(f"{ADDRESS}/subscription", **_NOTHING)
async def subscribe(consumer: ConsumerDep, body: SubscriptionV2) -> None:
    """Subscribe to topics or to a pattern, in place of the earlier subscription."""
    if (body.topics is None) == (body.topic_pattern is None):
        raise Problem(422, "expected either topics or topic_pattern")
    await consumer.call(Instance.subscribe, body.topics or [], body.topic_pattern)


@router.get(f"{ADDRESS}/subscription", responses=media.PLAIN_TOO)
async def subscription(consumer: ConsumerDep) -> dict[str, list[str]]:
    """Return the topics; for a pattern, those of the partitions that are assigned to the consumer."""
    return {"topics": await consumer.call(Instance.subscription)}


@router.delete(f"{ADDRESS}/subscription", **_NOTHING)
async def unsubscribe(consumer: ConsumerDep) -> None:
    """Unsubscribe from all topics, and drop partitions that were assigned by hand."""
    await consumer.call(Instance.unsubscribe)


@router.post(f"{ADDRESS}/assignments", **_NOTHING)
async def assign(consumer: ConsumerDep, body: PartitionsV2) -> None:
    """Assign partitions, whatever the group's other members read."""
    consumer.get()  # a consumer that does not exist is reported first
    for topic_partition in body.topic_partitions():
        await consumer.hub.topics.check(topic_partition.topic, topic_partition.partition)
    await consumer.call(Instance.assign, body.topic_partitions())


@router.get(f"{ADDRESS}/assignments", responses=media.PLAIN_TOO)
async def assignments(consumer: ConsumerDep) -> PartitionsV2:
    """Return the partitions that are assigned by hand or by the group."""
    found = await consumer.call(Instance.assignment)
    return PartitionsV2.model_construct(
        partitions=[PartitionRefV2.model_construct(**each._asdict()) for each in found]
    )


class PositionV2(PartitionRefV2):
    """An offset in a partition."""

    offset: Annotated[Offset, Field(lt=INT64)]  # there has to be a next one
    metadata: StrictStr | None = None


class PositionsV2(Body):
    offsets: Annotated[list[PositionV2], Field(max_length=PARTITIONS)]


class CommitV2(Body):
    """Offsets to commit, or nothing."""

    offsets: Annotated[list[PositionV2] | None, Field(max_length=PARTITIONS)] = None


@router.post(f"{ADDRESS}/offsets", responses=media.PLAIN_TOO)
async def commit(consumer: ConsumerDep, body: CommitV2 | None = None) -> list[Any]:
    """Commit the offsets of the last processed records; without offsets, of all records that were read."""
    offsets = None
    if body is not None and body.offsets is not None:
        offsets = {
            TopicPartition(position.topic, position.partition): position.offset + 1
            for position in body.offsets
        }
    await consumer.call(Instance.commit, offsets)
    return []


@router.get(f"{ADDRESS}/offsets", responses=media.PLAIN_TOO)
async def committed(consumer: ConsumerDep, request: Request) -> dict[str, list[dict[str, Any]]]:
    """Return the committed offsets of the partitions in the body, or of the assigned ones without a body.

    The body is `{"partitions": [{"topic": "orders", "partition": 0}]}`. A committed offset is that of the
    next record to read.
    """
    consumer.get()  # a consumer that does not exist is reported first
    body = await request.body()
    if not body.strip():
        partitions = await consumer.call(Instance.assignment)
    else:
        try:
            partitions = PartitionsV2.model_validate(read_json(body)).topic_partitions()
        except ValueError as error:
            raise Problem(422, f"the body: {error}") from None
    offsets = await consumer.call(Instance.committed, partitions)
    return {
        "offsets": [{**each._asdict(), "offset": offset, "metadata": ""} for each, offset in offsets.items()]
    }


@router.post(f"{ADDRESS}/positions", **_NOTHING)
async def seek(consumer: ConsumerDep, body: PositionsV2) -> None:
    """Read from these offsets on; the partitions have to be assigned to the consumer."""
    offsets = {
        TopicPartition(position.topic, position.partition): position.offset for position in body.offsets
    }
    await consumer.call(Instance.seek, offsets)


@router.post(f"{ADDRESS}/positions/beginning", **_NOTHING)
async def seek_to_beginning(consumer: ConsumerDep, body: PartitionsV2) -> None:
    """Read these partitions from their beginning."""
    await consumer.call(Instance.seek, dict.fromkeys(body.topic_partitions(), OFFSET_BEGINNING))


@router.post(f"{ADDRESS}/positions/end", **_NOTHING)
async def seek_to_end(consumer: ConsumerDep, body: PartitionsV2) -> None:
    """Read these partitions from their end."""
    await consumer.call(Instance.seek, dict.fromkeys(body.topic_partitions(), OFFSET_END))


@router.get(f"{ADDRESS}/records", responses=media.PLAIN_TOO)
async def records(
    consumer: ConsumerDep,
    *,
    timeout: Annotated[  # noqa: ASYNC109  the REST proxy calls it so
        int | None,
        Query(description="Most ms to wait for records; -1 is the consumer's own setting.", ge=-1, le=30_000),
    ] = None,
    max_bytes: Annotated[
        int | None, Query(description="Most bytes to return, unless one record has more.", ge=-1, le=INT64)
    ] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Return the records since the last read; an empty list if none came in time.

    They have the format that the consumer was created with, which the Accept header has to allow. A record in
    another format ends the read: the error names it, and `positions` can seek past it.
    """
    found = consumer.get()
    media_type = media.records_type(accept, found.options.format)
    decode = _DECODERS.get(found.options.format) or consumer.hub.schemas.read

    def as_answer(record: Record) -> dict[str, Any]:
        return {
            "topic": record.topic,
            "key": _part("key", decode, record.key),
            "value": _part("value", decode, record.value),
            "partition": record.partition,
            "offset": record.offset,
        }

    timeout_ms = None if timeout is None or timeout < 0 else timeout
    most = None if max_bytes is None or max_bytes <= 0 else max_bytes
    read = await consumer.hub.read(partial(found.read, timeout_ms, most, as_answer))
    return media.json_answer(read, media_type=media_type)


def _part(name: Literal["key", "value"], decode: Callable[[bytes | None], Any], data: bytes | None) -> Any:
    try:
        return decode(data)
    except NotJson as error:
        raise Unreadable(f"the {name} is not JSON: {error}") from None
    except BadValue as error:
        raise Unreadable(f"the {name} cannot be decoded: {error}") from None


_DECODERS: Final[dict[str, Callable[[bytes | None], Any]]] = {
    "binary": lambda data: None if data is None else base64.b64encode(data).decode(),
    "json": lambda data: None if data is None else read_json(data),
}
