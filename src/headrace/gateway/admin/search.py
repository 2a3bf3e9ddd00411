"""Search of the messages of a topic: by offset, time, key or text, or the newest."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.requests import ClientDisconnect

from headrace.client.errors import ClientError
from headrace.client.records.following import read_positions, written
from headrace.client.records.one_by_one import Record, Start
from headrace.client.records.scanning import Bounds, Scan, scan
from headrace.client.serializers.codecs.plain_json import write_json
from headrace.gateway.admin.display import RecordFilter, message_of
from headrace.gateway.problems import Problem, answers, bad_request, code_of, printable
from headrace.gateway.rest.bodies import INT64, PartitionQuery, TopicName
from headrace.gateway.rest.hub import Hub, HubDep

router = APIRouter(tags=["messages"])

SCANNED_BYTES: Final = 256 * 1024 * 1024  # most bytes that a search scans
SHOWN_BYTES: Final = 8 * 1024 * 1024  # of JSON, after which a response has no further message
MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
PROGRESS_S: Final = 0.2  # between two events about the progress of a search
EVENT_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
EVENT_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"content": {"text/event-stream": {}}},
    **answers(400, 404, 429, 503),
}

ExpressionQuery = Annotated[
    str | None,
    Query(
        description="Only messages for which this [CEL](https://cel.dev) expression is true. Its variables "
        "are key, value, headers, partition, offset, timestamp_ms and time.",
        max_length=2000,
    ),
]


class Search:
    def __init__(
        self,
        *,
        partition: PartitionQuery = None,
        offset: Annotated[
            int | None, Query(description="Start at this offset of each partition.", ge=0, le=INT64)
        ] = None,
        time: Annotated[
            int | None, Query(description="Start at the first message since this time in ms.", ge=0, le=INT64)
        ] = None,
        last: Annotated[
            int | None,
            Query(
                description="Scan this many before each partition's end, or before `from`; newest first.",
                ge=1,
                le=10**6,
            ),
        ] = None,
        from_: Annotated[
            str | None, Query(alias="from", description="Continue here: `next` of a response.")
        ] = None,
        limit: Annotated[int, Query(description="Most messages to return.", ge=1, le=1000)] = 50,
        key: Annotated[
            str | None, Query(description="Only messages with this key, as text or as a JSON string.")
        ] = None,
        text: Annotated[
            str | None,
            Query(description="Only messages with this in key, value or a header; case does not matter."),
        ] = None,
        filter: ExpressionQuery = None,  # noqa: A002  the name of the parameter
        scan: Annotated[int, Query(description="Most messages to scan.", ge=1, le=10**7)] = 200_000,
        timeout_ms: Annotated[int, Query(description="Longest time to scan.", ge=1, le=30_000)] = 5_000,
        max_value_bytes: Annotated[
            int, Query(description="Cut keys and values that are longer.", ge=0, le=MAX_VALUE_BYTES)
        ] = 64 * 1024,
        raw: Annotated[
            bool, Query(description="Return keys, values and headers as base64, whatever is in them.")
        ] = False,
    ) -> None:
        if sum(each is not None for each in (offset, time, last)) > 1:
            raise bad_request("offset, time and last exclude each other")
        self.start = Start(offset=offset, time_ms=time, last=last) if from_ is None else Start(last=last)
        self.positions = None if from_ is None else read_positions(from_)
        self.partition = partition
        self.partitions = sorted(self.positions or ()) if partition is None else [partition]
        self.bounds = Bounds(found=limit, records=scan, size_bytes=SCANNED_BYTES, time_s=timeout_ms / 1000)
        self.key, self.text, self.filter = key, text, filter
        self.max_value_bytes, self.raw = max_value_bytes, raw
        self.offline: tuple[int, ...] = ()  # after `run`: partitions that have no leader
        self.searched: tuple[int, ...] = ()  # after `run`: the others
        self.filter_error = ""  # after `run`: why the filter could not be applied to a message

    def run(
        self,
        hub: Hub,
        topic: str,
        cancelled: Event,
        on_event: Callable[[bytes, bytes], None] = lambda _kind, _data: None,
    ) -> Scan[bytes]:
        """Return every message found, as JSON. It blocks until it is cancelled, so it is for a thread.

        `on_event` is called with each `message` as soon as it is found, and with the `progress`.

        Messages become JSON at once, and their size is counted as such: a few bytes may decode to a large
        value.
        """
        written_bytes = 0

        def to_json(record: Record) -> bytes:
            nonlocal written_bytes
            message = write_json(message_of(record, self.max_value_bytes, hub.schemas.show, raw=self.raw))
            written_bytes += len(message)
            on_event(b"message", message)
            return message

        match = hub.match(self.filter)
        if match is not None:
            match([])  # refuse an invalid filter; start the process, which is not part of the search's time
        partitions = self._readable(hub, topic)
        if not partitions:
            return Scan(found=(), records=0, size_bytes=0, took_ms=0, stopped_by="end", next_offsets={})
        selecting = RecordFilter(
            self.key, self.text, hub.schemas.show, match, partial(hub.schemas.show, numbers=True)
        )
        progress = {"messages": 0, "size_bytes": 0}
        told_s = time.monotonic()

        def select(records: Sequence[Record]) -> list[bool]:
            nonlocal told_s
            selected = selecting.select(records)
            progress["messages"] += len(records)
            progress["size_bytes"] += sum(
                len(record.key or b"") + len(record.value or b"") for record in records
            )
            if time.monotonic() - told_s >= PROGRESS_S:
                told_s = time.monotonic()
                on_event(b"progress", write_json(progress))
            return selected

        found = scan(
            hub.reach.connection,
            topic,
            self.start,
            select=select,
            keep=to_json,
            is_full=lambda: written_bytes >= SHOWN_BYTES,
            bounds=replace(self.bounds, cancelled=cancelled),
            partitions=partitions,
            positions=self.positions,
        )
        self.filter_error = selecting.filter_error
        return found

    def _readable(self, hub: Hub, topic: str) -> list[int]:
        """Return the partitions to search that have a leader; others do not stop a search."""
        found = hub.reach.topics.topic(topic).partitions
        indexes = {each.index for each in found}
        for partition in self.partitions:
            if partition not in indexes:
                raise ClientError(f"{topic} has no partition {partition}, only 0 to {max(indexes)}")
        wanted = [part for part in found if not self.partitions or part.index in self.partitions]
        self.offline = tuple(part.index for part in wanted if part.leader is None)
        self.searched = tuple(part.index for part in wanted if part.leader is not None)
        return list(self.searched)


@router.get("/topics/{name}/messages", response_class=JSONResponse, responses=answers(400, 404, 429, 503))
async def messages(
    name: TopicName, request: Request, search: Annotated[Search, Depends()], hub: HubDep
) -> Response:
    """Search by offset, time, key or text, or return the newest; by default, from the beginning on.

    Messages, bytes and time of a search are bounded. `stopped_by` is `end` if all was scanned, else the
    bound that was reached: `limit`, `records`, `bytes` or `time`. The same request with `from` set to `next`
    continues; with `last`, further back. `offline` are partitions without a leader, which were not searched;
    `filter_error` says why the filter could not be applied to a message.
    """
    await hub.topics.check(name, search.partition)
    found = await hub.search(request, partial(search.run, hub, name))
    about, messages_json = _about(name, search, found), b",".join(found.found)
    return Response(b'%b,"messages":[%b]}' % (about[:-1], messages_json), media_type="application/json")


@router.get("/topics/{name}/messages/stream", response_class=StreamingResponse, responses=EVENT_ANSWERS)
async def stream(
    name: TopicName, request: Request, search: Annotated[Search, Depends()], hub: HubDep
) -> StreamingResponse:
    """Search with the same parameters, and send server-sent events meanwhile: a `message` for each that is
    found, `progress` with the messages and bytes that were scanned, and at the end `done`, with the fields of
    a search's response except the messages, or `error`.
    """
    await hub.topics.check(name, search.partition)
    events = _events(hub, name, search, request)
    return StreamingResponse(events, media_type="text/event-stream", headers=EVENT_HEADERS)


async def _events(hub: Hub, topic: str, search: Search, request: Request) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    # Bounded by the messages and bytes of a response, and by the time of a search.
    events: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send(kind: bytes, data: bytes) -> None:
        loop.call_soon_threadsafe(events.put_nowait, b"event: %b\ndata: %b\n\n" % (kind, data))

    async def run() -> None:
        try:
            send(b"progress", write_json({"messages": 0, "size_bytes": 0}))
            found = await hub.search(request, partial(search.run, hub, topic, on_event=send))
            send(b"done", _about(topic, search, found))
        except (Problem, ClientError) as error:
            send(b"error", write_json({"error_code": code_of(error), "message": printable(str(error))}))
        finally:
            loop.call_soon(events.put_nowait, None)

    running = asyncio.ensure_future(run())
    try:
        while (event := await events.get()) is not None:
            yield event
        with suppress(ClientDisconnect):
            await running
    finally:
        running.cancel()


def _about(topic: str, search: Search, found: Scan[bytes]) -> bytes:
    return write_json(
        {
            "topic": topic,
            "scanned": {"messages": found.records, "size_bytes": found.size_bytes, "took_ms": found.took_ms},
            "stopped_by": found.stopped_by,
            "next": written(found.next_offsets),
            "offline": search.offline,
            "filter_error": search.filter_error,
        }
    )
