"""A topic as it grows: server-sent events."""

from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from headrace.client.records.following import read_positions, written, written_short
from headrace.client.records.one_by_one import Record, Start
from headrace.http.admin.presence import Presence, Watched
from headrace.http.admin.showing import Matches, shown
from headrace.http.gateway.asking import INT64, PartitionQuery, TopicName
from headrace.http.gateway.decoding import BySchema
from headrace.http.gateway.hub import Shared
from headrace.http.gateway.plain_json import write_json
from headrace.http.gateway.tailing import MOST, Tail, TooMany
from headrace.http.problems import Problem, answers, code_of

router = APIRouter(tags=["messages"])

HEARTBEAT_S: Final = 3.0  # without a message, after which we look whether the cluster is still there
RETRY_MS: Final = 2000  # after which a browser comes back
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}


@router.get(
    "/topics/{name}/tail",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **answers(
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.NOT_FOUND,
            HTTPStatus.TOO_MANY_REQUESTS,
            HTTPStatus.SERVICE_UNAVAILABLE,
        ),
    },
    summary="Follow a topic live",
)
async def tail(
    name: TopicName,
    hub: Shared,
    presence: Watched,
    *,
    partition: PartitionQuery = None,
    last: Annotated[int, Query(description="Begin so many before each partition's end.", ge=0, le=10**6)] = 0,
    offset: Annotated[int | None, Query(description="Begin here in each partition.", ge=0, le=INT64)] = None,
    key: Annotated[str | None, Query(description="Only messages with this key.")] = None,
    text: Annotated[str | None, Query(description="Only with this in key, value or a header.")] = None,
    limit: Annotated[int | None, Query(description="End after so many messages.", ge=1)] = None,
    max_value_bytes: Annotated[int, Query(description="Cut what is longer.", ge=0, le=2**20)] = 64 * 1024,
    last_event_id: Annotated[str | None, Header(description="Go on after this event.")] = None,
) -> StreamingResponse:
    """Server-sent events, until the client goes: `message` as in a search, `skipped` if it was too slow for
    some, `status` when the cluster does not answer any more and when it does again, `error` before the end if
    there is one. A comment every few seconds shows that it is still alive.

    The id of an event says how far it is; `Last-Event-ID`, which browsers send by themselves, goes on there.
    """
    positions = read_positions(last_event_id) if last_event_id else None
    await hub.topics.check(name, partition)
    try:
        following = await hub.tails.open(
            name,
            Start(offset=offset) if offset is not None else Start(last=last),
            partitions=() if partition is None else [partition],
            positions=positions,
            fits=Matches(key, text, hub.schemas.show),
        )
    except TooMany:
        said = f"{MOST} tails are open, which is as many as there may be: close one"
        raise Problem(HTTPStatus.TOO_MANY_REQUESTS, 42901, said) from None
    events = _events(following, presence, limit, max_value_bytes, hub.schemas.show)
    return StreamingResponse(events, media_type="text/event-stream", headers=_HEADERS)


async def _events(
    following: Tail, presence: Presence, limit: int | None, most: int, by_schema: BySchema
) -> AsyncIterator[bytes]:
    """What the client is sent; when it goes, this is closed, and the tail with it."""
    at: dict[int, int] = {}
    left = INT64 if limit is None else limit
    is_there = True
    try:
        while (taken := await following.take(HEARTBEAT_S)) is not None:
            if not at:
                at.update(taken.begun)
                yield f"retry: {RETRY_MS}\n".encode() + _event("ready", {"next": written(at)}, at)
            missing = "" if taken.records else await presence.missing()
            if is_there is bool(missing):
                is_there = not missing
                yield _event("status", {"reachable": is_there, "message": missing})
            if taken.skipped:
                yield _event("skipped", {"skipped": taken.skipped})
            records = taken.records[:left]
            lines = await run_in_threadpool(_messages, records, at, most, by_schema) if records else []
            left -= len(lines)
            if left and taken.positions and at != taken.positions:  # others were passed over
                at.update(taken.positions)
                lines.append(_id(at) + b"\n")
            yield b"".join(lines) or b": still here\n\n"
            if not left:
                return
        if following.failure is not None:
            said = {"error_code": code_of(following.failure)[1], "message": str(following.failure)}
            yield _event("error", said)
    finally:
        following.stop()


def _messages(records: list[Record], at: dict[int, int], most: int, by_schema: BySchema) -> list[bytes]:
    """Their events, and `at` behind them; in a thread, as the registry may have to be asked."""
    lines = []
    for record in records:
        at[record.partition or 0] = record.offset + 1
        lines.append(_event("message", shown(record, most, by_schema), at))
    return lines


def _event(kind: str, data: dict[str, Any], at: Mapping[int, int] | None = None) -> bytes:
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), _id(at or {}), write_json(data))


def _id(at: Mapping[int, int]) -> bytes:
    return f"id: {written_short(at)}\n".encode() if at else b""
