"""Search of the messages of a topic: by offset, time, key or text, or the newest."""

from dataclasses import replace
from functools import partial
from threading import Event
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import JSONResponse

from headrace.client.errors import ClientError
from headrace.client.records.following import read_positions, written
from headrace.client.records.one_by_one import Record, Start
from headrace.client.records.scanning import Bounds, Scan, scan
from headrace.client.serializers.codecs.plain_json import write_json
from headrace.gateway.admin.display import RecordFilter, message_of
from headrace.gateway.problems import answers, bad_request
from headrace.gateway.rest.bodies import INT64, PartitionQuery, TopicName
from headrace.gateway.rest.hub import Hub, HubDep

router = APIRouter(tags=["messages"])

SCANNED_BYTES: Final = 256 * 1024 * 1024  # most bytes that a search scans
SHOWN_BYTES: Final = 8 * 1024 * 1024  # of JSON, after which a response has no further message
MAX_VALUE_BYTES: Final = 16 * 1024 * 1024


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

    def run(self, hub: Hub, topic: str, cancelled: Event) -> Scan[bytes]:
        """Return every message found, as JSON. It blocks until it is cancelled, so it is for a thread.

        Messages become JSON at once, and their size is counted as such: a few bytes may decode to a large
        value.
        """
        written_bytes = 0

        def to_json(record: Record) -> bytes:
            nonlocal written_bytes
            message = write_json(message_of(record, self.max_value_bytes, hub.schemas.show, raw=self.raw))
            written_bytes += len(message)
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
        found = scan(
            hub.reach.connection,
            topic,
            self.start,
            select=selecting.select,
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
    about = {
        "topic": name,
        "scanned": {"messages": found.records, "size_bytes": found.size_bytes, "took_ms": found.took_ms},
        "stopped_by": found.stopped_by,
        "next": written(found.next_offsets),
        "offline": search.offline,
        "filter_error": search.filter_error,
    }
    messages_json = b",".join(found.found)
    return Response(
        b'%b,"messages":[%b]}' % (write_json(about)[:-1], messages_json), media_type="application/json"
    )
