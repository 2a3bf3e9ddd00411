"""REST proxy, v2: where a consumer is, and what it has committed."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END
from fastapi import APIRouter, Depends, Request, Response
from pydantic import Field, StrictStr

from headrace.http.gateway.asking import INT64, PLACES, Body, GroupName, Offset
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.media import AnswerType, check_json
from headrace.http.gateway.plain_json import json_answer, read_json
from headrace.http.gateway.v2_instance import (
    ADDRESS,
    NO_CONTENT,
    REFUSALS,
    InstanceName,
    PlacesV2,
    PlaceV2,
    in_thread,
)
from headrace.http.problems import Problem
from headrace.http.raw_names import RawRoute
from headrace.protocol.ids import TopicPartition

router = APIRouter(
    tags=["REST proxy v2: consumers"], dependencies=[Depends(check_json)], route_class=RawRoute
)


class PositionV2(PlaceV2):
    """An offset of a partition."""

    offset: Annotated[Offset, Field(lt=INT64)]  # there is to be one after it
    metadata: StrictStr | None = None


class PositionsV2(Body):
    """Offsets of partitions."""

    offsets: Annotated[list[PositionV2], Field(max_length=PLACES)]


class CommitV2(Body):
    """Offsets to commit, or nothing."""

    offsets: Annotated[list[PositionV2] | None, Field(max_length=PLACES)] = None


@router.post(f"{ADDRESS}/offsets", response_model=list[Any], responses=REFUSALS, summary="Commit offsets")
async def commit(
    group: GroupName,
    instance: InstanceName,
    media_type: AnswerType,
    hub: Shared,
    asked: CommitV2 | None = None,
) -> Response:
    """Those of the last records that were processed, each; if none are given, all that were read."""
    offsets = None
    if asked is not None and asked.offsets is not None:
        offsets = {TopicPartition(each.topic, each.partition): each.offset + 1 for each in asked.offsets}
    await in_thread(hub, partial(hub.instances.get(group, instance).commit, offsets))
    return json_answer([], media_type=media_type)


@router.get(f"{ADDRESS}/offsets", responses=REFUSALS, summary="Committed offsets")
async def committed(
    group: GroupName, instance: InstanceName, request: Request, media_type: AnswerType, hub: Shared
) -> Response:
    """Of the partitions in the body, `{"partitions": [{"topic": "orders", "partition": 0}]}`; without one, of
    those that are assigned. The offset is that of the next record to be read.
    """
    found = hub.instances.get(group, instance)
    body = await request.body()
    places = _places(body) if body.strip() else await in_thread(hub, found.assignment)
    offsets = await in_thread(hub, partial(found.committed, places))
    answer = [{**place._asdict(), "offset": offset, "metadata": ""} for place, offset in offsets.items()]
    return json_answer({"offsets": answer}, media_type=media_type)


def _places(body: bytes) -> list[TopicPartition]:
    try:
        return PlacesV2.model_validate(read_json(body)).places()
    except ValueError as error:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 422, f"the body: {error}") from None


@router.post(f"{ADDRESS}/positions", **NO_CONTENT, summary="Go on elsewhere")
async def seek(group: GroupName, instance: InstanceName, asked: PositionsV2, hub: Shared) -> Response:
    """Read these partitions from these offsets on; they have to be assigned to the consumer."""
    offsets = {TopicPartition(each.topic, each.partition): each.offset for each in asked.offsets}
    await in_thread(hub, partial(hub.instances.get(group, instance).seek, offsets))
    return Response(status_code=HTTPStatus.NO_CONTENT)


@router.post(f"{ADDRESS}/positions/beginning", **NO_CONTENT, summary="Go back to the beginning")
async def seek_to_beginning(
    group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared
) -> Response:
    """Of these partitions."""
    return await _seek_all(hub, group, instance, asked, OFFSET_BEGINNING)


@router.post(f"{ADDRESS}/positions/end", **NO_CONTENT, summary="Skip to the end")
async def seek_to_end(group: GroupName, instance: InstanceName, asked: PlacesV2, hub: Shared) -> Response:
    """Of these partitions."""
    return await _seek_all(hub, group, instance, asked, OFFSET_END)


async def _seek_all(hub: Hub, group: str, instance: str, asked: PlacesV2, offset: int) -> Response:
    found = hub.instances.get(group, instance)
    await in_thread(hub, partial(found.seek, dict.fromkeys(asked.places(), offset)))
    return Response(status_code=HTTPStatus.NO_CONTENT)
