"""Live tail of a topic as server-sent events."""

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from headrace.client.errors import ClientError
from headrace.client.records.following import read_positions, written
from headrace.client.records.one_by_one import Record, Start
from headrace.client.serializers.codecs.plain_json import write_json
from headrace.gateway.admin.display import RecordFilter, message_of
from headrace.gateway.admin.search import EVENT_ANSWERS, EVENT_HEADERS, ExpressionQuery
from headrace.gateway.current import clients_of
from headrace.gateway.problems import Problem, code_of
from headrace.gateway.reach import Reach
from headrace.gateway.rest.bodies import INT64, PartitionQuery, TopicName
from headrace.gateway.rest.hub import HubDep
from headrace.gateway.rest.tails import MAX_TAILS, Tail, TooMany
from headrace.gateway.rest.values import BySchema

router = APIRouter(tags=["messages"])

HEARTBEAT_S: Final = 3.0  # without a message, after which the cluster is checked
RETRY_MS: Final = 2000  # after which a browser reconnects
FRESH_S: Final = 1.0  # for which the result of a check counts
ATTEMPTS: Final = 2  # of a check: a pooled connection may be to a broker that has restarted


class ClusterCheck:
    """Checks whether the cluster answers, once for all tails of a gateway."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = asyncio.Lock()
        self._checked_s = -math.inf
        self._error = ""

    async def error(self) -> str:
        """Return why the cluster cannot be reached, or an empty string if it can."""
        async with self._lock:
            if time.monotonic() - self._checked_s > FRESH_S:
                self._error = await run_in_threadpool(self._check)
                self._checked_s = time.monotonic()
            return self._error

    def _check(self) -> str:
        why = ""
        for _ in range(ATTEMPTS):
            try:
                self._reach.check()
            except ClientError as error:
                why = str(error)
            else:
                return ""
        return why


@router.get("/topics/{name}/tail", response_class=StreamingResponse, responses=EVENT_ANSWERS)
async def tail(
    name: TopicName,
    request: Request,
    hub: HubDep,
    *,
    partition: PartitionQuery = None,
    last: Annotated[
        int, Query(description="Start this many before each partition's end.", ge=0, le=10**6)
    ] = 0,
    offset: Annotated[
        int | None, Query(description="Start at this offset of each partition.", ge=0, le=INT64)
    ] = None,
    key: Annotated[str | None, Query(description="Only messages with this key.")] = None,
    text: Annotated[
        str | None, Query(description="Only messages with this in key, value or a header.")
    ] = None,
    filter: ExpressionQuery = None,  # noqa: A002  the name of the parameter
    limit: Annotated[int | None, Query(description="End after this many messages.", ge=1)] = None,
    max_value_bytes: Annotated[
        int, Query(description="Cut keys and values that are longer.", ge=0, le=2**20)
    ] = 64 * 1024,
    last_event_id: Annotated[str | None, Header(description="Continue after this event.")] = None,
) -> StreamingResponse:
    """Send server-sent events until the client disconnects: `message` as in a search, `skipped` if the client
    was too slow for some, `status` when the cluster stops or starts to answer, and `error` before the end if
    there is one. A comment every few seconds shows that the connection is alive.

    The id of an event has the offsets after it; with `Last-Event-ID`, which browsers send by themselves, the
    tail continues there.
    """
    positions = read_positions(last_event_id) if last_event_id else None
    await hub.topics.check(name, partition)
    match = hub.match(filter)
    if match is not None:
        await run_in_threadpool(match, [])  # an invalid one is refused before the stream begins
    try:
        opened = await hub.tails.open(
            name,
            Start(offset=offset) if offset is not None else Start(last=last),
            partitions=() if partition is None else [partition],
            positions=positions,
            fits=RecordFilter(key, text, hub.schemas.show, match, partial(hub.schemas.show, numbers=True)),
        )
    except TooMany:
        raise Problem(42901, f"{MAX_TAILS} tails are open, the most at a time: close one") from None
    events = _events(opened, clients_of(request).cluster_check, limit, max_value_bytes, hub.schemas.show)
    return StreamingResponse(events, media_type="text/event-stream", headers=EVENT_HEADERS)


async def _events(
    opened: Tail, check: ClusterCheck, limit: int | None, most: int, by_schema: BySchema
) -> AsyncIterator[bytes]:
    """Yield the events; when the client disconnects, this generator is closed, and so is the tail."""
    at: dict[int, int] = {}
    left = INT64 if limit is None else limit
    reachable = True
    try:
        while (taken := await opened.take(HEARTBEAT_S)) is not None:
            if not at:
                at.update(taken.begun)
                yield f"retry: {RETRY_MS}\n".encode() + _event("ready", {"next": written(at)}, at)
            error = "" if taken.records else await check.error()
            if reachable is bool(error):
                reachable = not error
                yield _event("status", {"reachable": reachable, "message": error})
            if taken.skipped:
                yield _event("skipped", {"skipped": taken.skipped})
            records = taken.records[:left]
            lines = await run_in_threadpool(_messages, records, at, most, by_schema) if records else []
            left -= len(lines)
            if left and taken.positions and at != taken.positions:  # records that the filter left out
                at.update(taken.positions)
                lines.append(_id(at) + b"\n")
            yield b"".join(lines) or b": still here\n\n"
            if not left:
                return
        if opened.failure is not None:
            failure = {"error_code": code_of(opened.failure), "message": str(opened.failure)}
            yield _event("error", failure)
    finally:
        opened.stop()


def _messages(records: list[Record], at: dict[int, int], most: int, by_schema: BySchema) -> list[bytes]:
    """Return the records' events and advance `at`; decoding may block, so it is for a thread."""
    lines = []
    for record in records:
        at[record.partition or 0] = record.offset + 1
        lines.append(_event("message", message_of(record, most, by_schema), at))
    return lines


def _event(kind: str, data: dict[str, Any], at: Mapping[int, int] | None = None) -> bytes:
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), _id(at or {}), write_json(data))


def _id(at: Mapping[int, int]) -> bytes:
    return f"id: {written(at)}\n".encode() if at else b""
