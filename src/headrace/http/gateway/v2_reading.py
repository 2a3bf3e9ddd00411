"""REST proxy, v2: records that a consumer reads."""

import base64
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Response

from headrace.client.records.one_by_one import Record
from headrace.http.gateway.asking import INT64, GroupName
from headrace.http.gateway.encoding import BadValue
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.instance import Unreadable
from headrace.http.gateway.media import check_json, records_type
from headrace.http.gateway.plain_json import NotJson, json_answer, read_json
from headrace.http.gateway.v2_answers import v2
from headrace.http.gateway.v2_instance import (
    ADDRESS,
    REFUSALS,
    InstanceName,
    in_reading_thread,
)
from headrace.http.raw_names import RawRoute

router = APIRouter(
    tags=["REST proxy v2: consumers"], dependencies=[Depends(check_json)], route_class=RawRoute
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadV2:
    """A record."""

    topic: str
    key: Any
    value: Any
    partition: int
    offset: int


@router.get(
    f"{ADDRESS}/records",
    response_model=list[ReadV2],
    responses=REFUSALS | v2(HTTPStatus.TOO_MANY_REQUESTS),
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
    read = await in_reading_thread(
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
