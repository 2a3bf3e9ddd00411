"""REST proxy, v3: records produced, one in a request or many in a stream, and a delivery report for each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from http import HTTPStatus
from itertools import islice
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StrictStr
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from headrace.client.errors import ClientError
from headrace.http.gateway.asking import Body, TopicName, example
from headrace.http.gateway.delivery import Failed
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.gateway.known_topics import PartitionsOf
from headrace.http.gateway.plain_json import json_answer, write_json
from headrace.http.gateway.splitting import NotAnObject, Splitter
from headrace.http.gateway.v3_envelope import Fields, Linked, Links, V3Route
from headrace.http.gateway.v3_produce import (
    TOO_COSTLY,
    Prepared,
    RecordV3,
    has_schema,
    prepare,
    read_record,
    refused,
    reported,
    status_of,
)
from headrace.http.gateway.v3_schemas import write_by_schema
from headrace.http.problems import Problem, answers
from headrace.http.registry.threads import in_registry_thread

router = APIRouter(prefix="/v3/clusters/{cluster_id}/topics", tags=["REST proxy v3"], route_class=V3Route)

MOST_BYTES: Final = 16 * 1024 * 1024  # of one record in a stream
SPARE_BYTES: Final = 1024 * 1024  # before the end of what a body may have, a stream is ended in order
BATCH: Final = 10_000  # records in a batch, or in a body that is no stream
TURN: Final = 200  # records after which other requests have their turn
HELD_BYTES: Final = 16 * 1024 * 1024  # of encoded records that a request holds before it sends them
_REFUSALS = answers(
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.SERVICE_UNAVAILABLE,
)
_SCHEMA: Final = RecordV3.model_json_schema(ref_template="#/components/schemas/{model}")
del _SCHEMA["$defs"]  # the batch below brings them
_BODY: Final = {"requestBody": {"required": True, "content": {"application/json": {"schema": _SCHEMA}}}}

Asked = TypeVar("Asked")
Refused = Problem | ClientError


class Producing:
    """Writes the records of one request, and reports."""

    def __init__(self, hub: Hub, links: Links, topic: str) -> None:
        self._hub = hub
        self._links = links
        self._topic = topic
        self._too_costly: Problem | None = None  # why records are not written by schemas any more

    async def report(
        self, asked: Sequence[Asked], read: Callable[[Asked], RecordV3]
    ) -> list[tuple[int, Fields]]:
        """A status and a report for each of these records, in their order."""
        reports: list[tuple[int, Fields]] = []
        async for prepared in self.prepare(asked, read):
            reports += await self.send(prepared)
        return reports

    async def prepare(
        self, asked: Sequence[Asked], read: Callable[[Asked], RecordV3]
    ) -> AsyncIterator[list[Prepared | Refused]]:
        """The records, or why one is none; other requests have their turn meanwhile.

        All come at once, unless they are large as they are written: defaults of a schema make much of little.
        """
        partitions = PartitionsOf(self._hub.topics, self._topic)
        prepared: list[Prepared | Refused] = []
        held_bytes = 0
        for number, each in enumerate(asked):
            await _take_turns(number)
            try:
                record = read(each)
                await partitions.check(record.partition_id)
                prepared.append(ready := await self._prepare(record))
                held_bytes += len(ready.record.key or b"") + len(ready.record.value or b"")
            except (Problem, ClientError) as error:
                prepared.append(error)
            if held_bytes > HELD_BYTES:
                yield prepared
                prepared, held_bytes = [], 0
        yield prepared

    async def _prepare(self, record: RecordV3) -> Prepared:
        """The record as bytes. One request may have one that is too costly by its schema, not many."""
        ready = partial(prepare, record, self._topic, partial(write_by_schema, self._hub.schemas))
        if not has_schema(record):
            return ready()
        if self._too_costly is not None:
            raise self._too_costly
        try:
            return await in_registry_thread(ready)
        except Problem as problem:
            if problem.code == TOO_COSTLY:
                self._too_costly = problem
            raise

    async def send(self, prepared: Sequence[Prepared | Refused]) -> list[tuple[int, Fields]]:
        ready = [each for each in prepared if isinstance(each, Prepared)]
        sent = await self._hub.send(self._topic, [each.record for each in ready])
        outcomes = iter(sent)
        reports: list[tuple[int, Fields]] = []
        for number, each in enumerate(prepared):
            await _take_turns(number)
            if not isinstance(each, Prepared):
                reports.append((status_of(each), refused(each)))
                continue
            outcome = next(outcomes)
            if isinstance(outcome, Failed):
                reports.append((status_of(outcome.error), refused(outcome.error)))
                continue
            report = reported(outcome, each, self._links.cluster_id, self._topic)
            reports.append((HTTPStatus.OK, report))
        return reports


async def _take_turns(number: int) -> None:
    if number % TURN == TURN - 1:
        await asyncio.sleep(0)


@router.post(
    "/{topic_name}/records",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {}}}}, **_REFUSALS},
    openapi_extra=_BODY,
    summary="Write records",
)
async def produce(topic_name: TopicName, request: Request, links: Linked, hub: Shared) -> Response:
    """One JSON object for each record, one after the other; a line of the answer for each, in their order.

    A body that is sent in chunks is a stream: it is answered while it comes, and lasts as long as the client
    likes. An `error_code` of 200 means that all in-sync replicas have the record. The status of the answer
    is that of the record if there is one, and 200 if there are several.
    """
    _check_json(request)
    await hub.topics.partitions(topic_name)
    producing = Producing(hub, links, topic_name)
    if "content-length" not in request.headers:
        return Streamed(_lines(request, producing, hub.reach.settings.max_request_bytes))
    splitter = Splitter(hub.reach.settings.max_request_bytes)
    try:
        body = await request.body()
        texts = await run_in_threadpool(lambda: list(islice(splitter.feed(body), BATCH + 1)))
        if len(texts) > BATCH:
            said = f"a body may have {BATCH:,} records; a stream (chunked) may have any number"
            raise Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, 413, said)
        splitter.finish()
    except NotAnObject as error:
        raise Problem(HTTPStatus.BAD_REQUEST, 400, str(error)) from None
    if not texts:
        raise Problem(HTTPStatus.BAD_REQUEST, 400, "there is no record in the body")
    reports = await producing.report(texts, read_record)
    if len(reports) == 1:
        return json_answer(reports[0][1], reports[0][0])
    return Response(b"".join(_line(report) for _, report in reports), media_type="application/json")


async def _lines(request: Request, producing: Producing, most_bytes: int) -> AsyncIterator[bytes]:
    """The reports of a stream, as its records are written."""
    splitter = Splitter(MOST_BYTES)
    taken = 0
    try:
        async for chunk in request.stream():
            taken += len(chunk)
            texts = list(splitter.feed(chunk))
            if texts:
                yield b"".join(_line(report) for _, report in await producing.report(texts, read_record))
            if taken > most_bytes - SPARE_BYTES:
                said = f"this stream has had {taken:,} bytes, which is as much as one may have: begin another"
                yield _line({"error_code": 413, "message": said})
                return
        splitter.finish()
    except NotAnObject as error:
        yield _line({"error_code": 400, "message": str(error)})
    except ClientDisconnect:
        return  # what was whole is written; there is nobody to tell


def _line(report: Fields) -> bytes:
    return write_json(report) + b"\n"


def _check_json(request: Request) -> None:
    given = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if given != "application/json":
        said = f"the content type is {given!r}: expected application/json"
        raise Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, 415, said)


class Streamed(Response):
    """An answer that is made while the request is still coming.

    Starlette's would listen for the client to go meanwhile, and take parts of the request for that.
    """

    media_type = "application/json"

    def __init__(self, lines: AsyncIterator[bytes]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._lines = lines

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for line in self._lines:
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


# -- batches -----------------------------------------------------------------------------------


class EntryV3(RecordV3):
    """A record of a batch; its id is what the answer calls it by."""

    model_config = example(id="1", value={"type": "JSON", "data": {"n": 1}})

    id: Annotated[StrictStr, Field(min_length=1, max_length=80)]


class BatchV3(Body):
    """Records to be written."""

    entries: Annotated[list[EntryV3], Field(min_length=1, max_length=BATCH)]


class BatchAnswer(Body):
    """Reports of those that were written, and of those that were not."""

    successes: list[dict[str, Any]]
    failures: list[dict[str, Any]]


@router.post(
    "/{topic_name}/records:batch",
    status_code=HTTPStatus.MULTI_STATUS,
    response_model=BatchAnswer,
    responses=_REFUSALS,
    summary="Write a batch of records",
)
async def produce_batch(topic_name: TopicName, asked: BatchV3, links: Linked, hub: Shared) -> Response:
    """Each has an id, by which the answer says what has become of it."""
    if len({each.id for each in asked.entries}) != len(asked.entries):
        raise Problem(HTTPStatus.BAD_REQUEST, 400, "an id is there twice")
    await hub.topics.partitions(topic_name)
    producing = Producing(hub, links, topic_name)
    reports = await producing.report(asked.entries, lambda entry: entry)
    answer: dict[str, list[Fields]] = {"successes": [], "failures": []}
    for entry, (status, report) in zip(asked.entries, reports, strict=True):
        if status == HTTPStatus.OK:
            del report["error_code"]
        answer["successes" if status == HTTPStatus.OK else "failures"].append({"id": entry.id, **report})
    return json_answer(answer, HTTPStatus.MULTI_STATUS)
