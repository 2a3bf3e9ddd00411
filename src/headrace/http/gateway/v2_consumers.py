"""REST proxy, v2: consumers, which the gateway keeps from one request to the next.

Make one, subscribe, read records again and again, delete it. It has to be asked at the gateway that made it:
`base_uri` is its address.
"""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from anyio import to_thread
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from pydantic import ConfigDict, Field, StrictInt, StrictStr

from headrace.client.connection import Place
from headrace.client.records import Record
from headrace.http.gateway.asking import INT64, PLACES, Body, GroupName, Index, Name, Offset
from headrace.http.gateway.encoding import BadValue
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.instances import Unreadable, Wanted
from headrace.http.gateway.media import AnswerType, check_json, records_type
from headrace.http.gateway.plain_json import NotJson, json_answer, read_json
from headrace.http.gateway.v2_answers import v2
from headrace.http.problems import Problem

router = APIRouter(tags=["REST proxy v2: consumers"], dependencies=[Depends(check_json)])

Answer = TypeVar("Answer")
InstanceName = Annotated[str, Path(description="A consumer's name.", min_length=1, max_length=1000)]
_ADDRESS = "/consumers/{group}/instances/{instance}"
_REFUSALS = v2(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.CONFLICT,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
)
_NO_CONTENT: dict[str, Any] = {
    "status_code": HTTPStatus.NO_CONTENT,
    "responses": v2(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.CONFLICT,
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        HTTPStatus.UNPROCESSABLE_ENTITY,
        status=HTTPStatus.NO_CONTENT,
    ),
}


class ConsumerV2(Body):
    """A consumer to be made."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: Annotated[StrictStr | None, Field(min_length=1, max_length=200)] = None
    format: Literal["binary", "json", "avro", "jsonschema", "protobuf"] = "binary"
    auto_offset_reset: Annotated[Literal["earliest", "latest"], Field(alias="auto.offset.reset")] = "latest"
    auto_commit: Annotated[Literal["true", "false"] | bool, Field(alias="auto.commit.enable")] = True
    min_bytes: Annotated[
        StrictInt, Field(alias="fetch.min.bytes", ge=-1, le=10_000_000, description="-1 is the default.")
    ] = -1
    timeout_ms: Annotated[StrictInt, Field(alias="consumer.request.timeout.ms", ge=0, le=30_000)] = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeV2:
    """A consumer's name, and its address."""

    instance_id: str
    base_uri: str


@router.post(
    "/consumers/{group}",
    response_model=MadeV2,
    responses=_REFUSALS | v2(HTTPStatus.TOO_MANY_REQUESTS),
    summary="Make a consumer",
)
async def create(
    group: GroupName, request: Request, media_type: AnswerType, hub: Shared, asked: ConsumerV2 | None = None
) -> Response:
    """It is a member of the group once it subscribes, until it is deleted or not used for five minutes."""
    given = asked or ConsumerV2()
    wanted = Wanted(
        format=given.format,
        auto_offset_reset=given.auto_offset_reset,
        auto_commit=given.auto_commit in (True, "true"),
        min_bytes=max(given.min_bytes, 1),
        timeout_ms=given.timeout_ms,
    )
    name = await _thread(hub, partial(hub.instances.create, group, given.name, wanted))
    base_uri = f"{request.base_url}consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
    return json_answer({"instance_id": name, "base_uri": base_uri}, media_type=media_type)


@router.delete(_ADDRESS, **_NO_CONTENT, summary="Delete a consumer")
async def delete(group: GroupName, instance: InstanceName, hub: Shared) -> Response:
    """It leaves its group; with auto commit, what was read is committed."""
    await _thread(hub, partial(hub.instances.delete, group, instance))
    return Response(status_code=HTTPStatus.NO_CONTENT)


# -- what is read ------------------------------------------------------------------------------


class SubscriptionV2(Body):
    """Topics, or a pattern for their names."""

    topics: Annotated[list[Name] | None, Field(min_length=1, max_length=1000)] = None
    topic_pattern: Annotated[StrictStr | None, Field(min_length=1, max_length=1000)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsV2:
    """Topics by name."""

    topics: list[str]


class PlaceV2(Body):
    """A partition."""

    topic: Name
    partition: Index


class PlacesV2(Body):
    """Partitions."""

    partitions: Annotated[list[PlaceV2], Field(max_length=PLACES)]

    def places(self) -> list[Place]:
        return [Place(each.topic, each.partition) for each in self.partitions]


@router.post(f"{_ADDRESS}/subscription", **_NO_CONTENT, summary="Subscribe to topics")
async def subscribe(group: GroupName, instance: InstanceName, asked: SubscriptionV2, hub: Shared) -> Response:
    """Or to a pattern; this takes the place of what was subscribed to before."""
    if (asked.topics is None) == (asked.topic_pattern is None):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 422, "give topics or topic_pattern, and not both")
    found = hub.instances.get(group, instance)
    await _thread(hub, partial(found.subscribe, asked.topics or [], asked.topic_pattern))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    f"{_ADDRESS}/subscription", response_model=TopicsV2, responses=_REFUSALS, summary="What is subscribed to"
)
async def subscription(
    group: GroupName, instance: InstanceName, media_type: AnswerType, hub: Shared
) -> Response:
    """The topics of which partitions are assigned to the consumer."""
    found = hub.instances.get(group, instance)
    return json_answer({"topics": await _thread(hub, found.subscription)}, media_type=media_type)


@router.delete(f"{_ADDRESS}/subscription", **_NO_CONTENT, summary="Unsubscribe")
async def unsubscribe(group: GroupName, instance: InstanceName, hub: Shared) -> Response:
    """From everything; partitions that were assigned by hand are let go, too."""
    await _thread(hub, hub.instances.get(group, instance).unsubscribe)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(f"{_ADDRESS}/assignments", **_NO_CONTENT, summary="Assign partitions by hand")
async def assign(group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared) -> Response:
    """Whatever other members of the group read."""
    found = hub.instances.get(group, instance)
    for place in asked.places():
        await hub.topics.check(place.topic, place.partition)
    await _thread(hub, partial(found.assign, asked.places()))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    f"{_ADDRESS}/assignments", response_model=PlacesV2, responses=_REFUSALS, summary="What is assigned"
)
async def assignments(
    group: GroupName, instance: InstanceName, media_type: AnswerType, hub: Shared
) -> Response:
    """By hand, or by the group."""
    found = await _thread(hub, hub.instances.get(group, instance).assignment)
    return json_answer({"partitions": [each._asdict() for each in found]}, media_type=media_type)


# -- records -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadV2:
    """A record."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int


@router.get(
    f"{_ADDRESS}/records",
    response_model=list[ReadV2],
    responses=_REFUSALS,
    summary="Read records",
)
async def records(
    group: GroupName,
    instance: InstanceName,
    hub: Shared,
    *,
    timeout: Annotated[  # noqa: ASYNC109  it is the proxy's word
        int | None,
        Query(description="Wait so many ms for some; -1 as the consumer was made.", ge=-1, le=30_000),
    ] = None,
    max_bytes: Annotated[int | None, Query(description="At most so much, but one.", ge=-1, le=INT64)] = None,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """What has come since the last time; an empty list if nothing came in time.

    In the format that the consumer was made for: that is what to accept. A record that is in another is where
    reading ends: the answer says which one it is, and to go on behind it is `positions`.
    """
    found = hub.instances.get(group, instance)
    media_type = records_type(accept, found.wanted.format)
    read = await _thread(
        hub,
        partial(
            found.read,
            None if timeout is None or timeout < 0 else timeout,
            None if max_bytes is None or max_bytes <= 0 else max_bytes,
            partial(_read, _SHOWN.get(found.wanted.format, partial(_by_schema, hub))),
        ),
    )
    return json_answer(read, media_type=media_type)


def _read(show: Callable[[bytes | None], Any], record: Record) -> dict[str, Any]:
    return {
        "topic": record.topic,
        "key": show(record.key),
        "value": show(record.value),
        "partition": record.partition,
        "offset": record.offset,
    }


def _binary(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _json(data: bytes | None) -> Any:
    if data is None:
        return None
    try:
        return read_json(data)
    except NotJson as error:
        raise Unreadable(f"it is not JSON: {error}") from None


def _by_schema(hub: Hub, data: bytes | None) -> Any:
    try:
        return hub.schemas.read(data)
    except BadValue as error:
        raise Unreadable(str(error)) from None


_SHOWN: dict[str, Callable[[bytes | None], Any]] = {"binary": _binary, "json": _json}


# -- offsets -----------------------------------------------------------------------------------


class PositionV2(PlaceV2):
    """An offset of a partition."""

    offset: Offset
    metadata: StrictStr | None = None


class PositionsV2(Body):
    """Offsets of partitions."""

    offsets: Annotated[list[PositionV2], Field(max_length=PLACES)]


@router.post(f"{_ADDRESS}/offsets", response_model=list[Any], responses=_REFUSALS, summary="Commit offsets")
async def commit(
    group: GroupName,
    instance: InstanceName,
    media_type: AnswerType,
    hub: Shared,
    asked: PositionsV2 | None = None,
) -> Response:
    """Those of the last records that were processed, each; without a body, all that were read."""
    offsets = None
    if asked is not None:
        offsets = {Place(each.topic, each.partition): each.offset + 1 for each in asked.offsets}
    await _thread(hub, partial(hub.instances.get(group, instance).commit, offsets))
    return json_answer([], media_type=media_type)


@router.get(f"{_ADDRESS}/offsets", responses=_REFUSALS, summary="Committed offsets")
async def committed(
    group: GroupName, instance: InstanceName, request: Request, media_type: AnswerType, hub: Shared
) -> Response:
    """Of the partitions in the body, `{"partitions": [{"topic": "orders", "partition": 0}]}`; without one, of
    those that are assigned. The offset is that of the next record to be read.
    """
    found = hub.instances.get(group, instance)
    body = await request.body()
    places = _places(body) if body.strip() else await _thread(hub, found.assignment)
    offsets = await _thread(hub, partial(found.committed, places))
    answer = [{**place._asdict(), "offset": offset, "metadata": ""} for place, offset in offsets.items()]
    return json_answer({"offsets": answer}, media_type=media_type)


def _places(body: bytes) -> list[Place]:
    try:
        return PlacesV2.model_validate(read_json(body)).places()
    except ValueError as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 422, f"the body: {error}") from None


@router.post(f"{_ADDRESS}/positions", **_NO_CONTENT, summary="Go on elsewhere")
async def seek(group: GroupName, instance: InstanceName, asked: PositionsV2, hub: Shared) -> Response:
    """Read these partitions from these offsets on; they have to be assigned to the consumer."""
    offsets = {Place(each.topic, each.partition): each.offset for each in asked.offsets}
    await _thread(hub, partial(hub.instances.get(group, instance).seek, offsets))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(f"{_ADDRESS}/positions/beginning", **_NO_CONTENT, summary="Go back to the beginning")
async def seek_to_beginning(
    group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared
) -> Response:
    """Of these partitions."""
    return await _seek_all(hub, group, instance, asked, OFFSET_BEGINNING)


@router.post(f"{_ADDRESS}/positions/end", **_NO_CONTENT, summary="Skip to the end")
async def seek_to_end(group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared) -> Response:
    """Of these partitions."""
    return await _seek_all(hub, group, instance, asked, OFFSET_END)


async def _seek_all(hub: Hub, group: str, instance: str, asked: PlacesV2, offset: int) -> Response:
    found = hub.instances.get(group, instance)
    await _thread(hub, partial(found.seek, dict.fromkeys(asked.places(), offset)))
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def _thread(hub: Hub, what: Callable[[], Answer]) -> Answer:
    """Call what waits for brokers, apart from the threads of other routes."""
    return await to_thread.run_sync(what, limiter=hub.consuming)
