"""Searching the messages of a topic: by offset, by time, the newest, by key, by what is in them."""

from dataclasses import asdict, dataclass
from functools import partial
from http import HTTPStatus
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query, Response

from headrace.client.records.following import read_positions, written
from headrace.client.records.one_by_one import Record, Start
from headrace.client.records.scanning import Bounds, Scan, scan
from headrace.http.admin.showing import Matches, Message, shown
from headrace.http.gateway.asking import INT64, PartitionQuery, TopicName
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.plain_json import write_json
from headrace.http.problems import Problem, answers

router = APIRouter(tags=["messages"])

SCANNED_BYTES: Final = 256 * 1024 * 1024  # that one search looks at
SHOWN_BYTES: Final = 8 * 1024 * 1024  # after which an answer has no further message
MOST_VALUE_BYTES: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Scanned:
    """What was looked at for an answer."""

    messages: int
    size_bytes: int
    took_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagesAnswer:
    """What was found, why the search ended, and where it goes on.

    `stopped_by` is `end` if all was looked at, else the bound that was reached: `limit`, `records`, `bytes`
    or `time`. The same request with `from` set to `next` goes on; with `last`, further back.
    """

    topic: str
    messages: tuple[Message, ...]
    scanned: Scanned
    stopped_by: Literal["end", "limit", "records", "bytes", "time"]
    next: str


class Search:
    """The parameters of a search."""

    def __init__(
        self,
        *,
        partition: PartitionQuery = None,
        offset: Annotated[
            int | None, Query(description="Begin here in each partition.", ge=0, le=INT64)
        ] = None,
        time: Annotated[
            int | None, Query(description="Begin at the first message since then, in ms.", ge=0, le=INT64)
        ] = None,
        last: Annotated[
            int | None,
            Query(
                description="Look at this many before each partition's end, or `from`; newest first.",
                ge=1,
                le=10**6,
            ),
        ] = None,
        from_: Annotated[
            str | None,
            Query(alias="from", description="Go on here: `next` of an answer.", examples=["0:120,1:88"]),
        ] = None,
        limit: Annotated[int, Query(description="At most so many messages.", ge=1, le=1000)] = 50,
        key: Annotated[
            str | None, Query(description="Only messages with this key, as text or as a JSON string.")
        ] = None,
        text: Annotated[
            str | None, Query(description="Only with this in key, value or a header, in any case.")
        ] = None,
        scan: Annotated[int, Query(description="Look at so many at most.", ge=1, le=10**7)] = 200_000,
        timeout_ms: Annotated[int, Query(description="Look for so long at most.", ge=1, le=30_000)] = 5_000,
        max_value_bytes: Annotated[
            int, Query(description="Cut what is longer.", ge=0, le=MOST_VALUE_BYTES)
        ] = 64 * 1024,
    ) -> None:
        if sum(each is not None for each in (offset, time, last)) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, 40002, "offset, time and last exclude each other")
        self.start = Start(offset=offset, time_ms=time, last=last) if from_ is None else Start(last=last)
        self.positions = None if from_ is None else read_positions(from_)
        self.partition = partition
        self.partitions = sorted(self.positions or ()) if partition is None else [partition]
        self.bounds = Bounds(found=limit, records=scan, size_bytes=SCANNED_BYTES, time_s=timeout_ms / 1000)
        self.key, self.text = key, text
        self.max_value_bytes = max_value_bytes

    def run(self, hub: Hub, topic: str) -> Scan[bytes]:
        """Every message that is found, as JSON; for a thread.

        What is found is written at once, and counted so: a record is not cut, and the value that a few bytes
        stand for may be large.
        """
        written_bytes = 0

        def keep(record: Record) -> bytes:
            nonlocal written_bytes
            message = write_json(shown(record, self.max_value_bytes, hub.schemas.show))
            written_bytes += len(message)
            return message

        return scan(
            hub.reach.bootstrap,
            topic,
            self.start,
            fits=Matches(self.key, self.text, hub.schemas.show),
            keep=keep,
            is_full=lambda: written_bytes >= SHOWN_BYTES,
            bounds=self.bounds,
            partitions=self.partitions,
            positions=self.positions,
        )


@router.get(
    "/topics/{name}/messages",
    response_model=MessagesAnswer,
    responses=answers(
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    ),
    summary="Search messages",
)
async def messages(name: TopicName, search: Annotated[Search, Depends()], hub: Shared) -> Response:
    """By offset, by time, the newest, by key, by what is in them; without any of these, from the beginning.

    The search is bounded in messages, bytes and time: the answer says how far it got and how to go on.
    """
    await hub.topics.check(name, search.partition)
    found = await hub.search(partial(_answer, hub, name, search))
    return Response(found, media_type="application/json")


def _answer(hub: Hub, topic: str, search: Search) -> bytes:
    found = search.run(hub, topic)
    about = {
        "topic": topic,
        "scanned": asdict(
            Scanned(messages=found.records, size_bytes=found.size_bytes, took_ms=found.took_ms)
        ),
        "stopped_by": found.stopped_by,
        "next": written(found.next_offsets),
    }
    return b'%b,"messages":[%b]}' % (write_json(about)[:-1], b",".join(found.found))
