"""REST proxy, v2: consumers, which the gateway keeps from one request to the next.

Make one, subscribe, read records again and again, delete it. It has to be asked at the gateway that made it:
`base_uri` is its address.
"""

from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Literal
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request, Response
from pydantic import ConfigDict, Field, StrictInt, StrictStr

from headrace.http.gateway.asking import NO_NUL, Body, GroupName, Name
from headrace.http.gateway.hub import Shared
from headrace.http.gateway.instance import Wanted
from headrace.http.gateway.media import AnswerType, check_json
from headrace.http.gateway.plain_json import json_answer
from headrace.http.gateway.v2_answers import v2
from headrace.http.gateway.v2_instance import ADDRESS, NO_CONTENT, REFUSALS, InstanceName, PlacesV2, in_thread
from headrace.http.problems import Problem
from headrace.http.raw_names import RawRoute

router = APIRouter(
    tags=["REST proxy v2: consumers"], dependencies=[Depends(check_json)], route_class=RawRoute
)


class ConsumerV2(Body):
    """A consumer to be made."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    name: Annotated[StrictStr | None, Field(min_length=1, max_length=200, pattern=NO_NUL)] = None
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
    responses=REFUSALS | v2(HTTPStatus.TOO_MANY_REQUESTS),
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
    name = await in_thread(hub, partial(hub.instances.create, group, given.name, wanted))
    base_uri = f"{request.base_url}consumers/{quote(group, safe='')}/instances/{quote(name, safe='')}"
    return json_answer({"instance_id": name, "base_uri": base_uri}, media_type=media_type)


@router.delete(ADDRESS, **NO_CONTENT, summary="Delete a consumer")
async def delete(group: GroupName, instance: InstanceName, hub: Shared) -> Response:
    """It leaves its group; with auto commit, what was read is committed."""
    await in_thread(hub, partial(hub.instances.delete, group, instance))
    return Response(status_code=HTTPStatus.NO_CONTENT)


# -- what is read ------------------------------------------------------------------------------


class SubscriptionV2(Body):
    """Topics, or a pattern for their names."""

    topics: Annotated[list[Name] | None, Field(min_length=1, max_length=1000)] = None
    topic_pattern: Annotated[StrictStr | None, Field(min_length=1, max_length=1000, pattern=NO_NUL)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsV2:
    """Topics by name."""

    topics: list[str]


@router.post(f"{ADDRESS}/subscription", **NO_CONTENT, summary="Subscribe to topics")
async def subscribe(group: GroupName, instance: InstanceName, asked: SubscriptionV2, hub: Shared) -> Response:
    """Or to a pattern; this takes the place of what was subscribed to before."""
    if (asked.topics is None) == (asked.topic_pattern is None):
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 422, "give topics or topic_pattern, and not both")
    found = hub.instances.get(group, instance)
    await in_thread(hub, partial(found.subscribe, asked.topics or [], asked.topic_pattern))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(
    f"{ADDRESS}/subscription", response_model=TopicsV2, responses=REFUSALS, summary="What is subscribed to"
)
async def subscription(
    group: GroupName, instance: InstanceName, media_type: AnswerType, hub: Shared
) -> Response:
    """The topics' names; of a pattern, those of which partitions are assigned to the consumer."""
    found = hub.instances.get(group, instance)
    return json_answer({"topics": await in_thread(hub, found.subscription)}, media_type=media_type)


@router.delete(f"{ADDRESS}/subscription", **NO_CONTENT, summary="Unsubscribe")
async def unsubscribe(group: GroupName, instance: InstanceName, hub: Shared) -> Response:
    """From everything; partitions that were assigned by hand are let go, too."""
    await in_thread(hub, hub.instances.get(group, instance).unsubscribe)
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(f"{ADDRESS}/assignments", **NO_CONTENT, summary="Assign partitions by hand")
async def assign(group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared) -> Response:
    """Whatever other members of the group read."""
    found = hub.instances.get(group, instance)
    for place in asked.places():
        await hub.topics.check(place.topic, place.partition)
    await in_thread(hub, partial(found.assign, asked.places()))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.get(f"{ADDRESS}/assignments", response_model=PlacesV2, responses=REFUSALS, summary="What is assigned")
async def assignments(
    group: GroupName, instance: InstanceName, media_type: AnswerType, hub: Shared
) -> Response:
    """By hand, or by the group."""
    found = await in_thread(hub, hub.instances.get(group, instance).assignment)
    return json_answer({"partitions": [each._asdict() for each in found]}, media_type=media_type)
