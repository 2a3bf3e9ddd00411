"""REST proxy, v3: produce records, one in a request or many in a stream, with a report for each."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from itertools import islice
from typing import Annotated, Final, TypeVar

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import Field, StrictStr
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from headrace.client.errors import ClientError
from headrace.client.serializers.codecs.plain_json import write_json
from headrace.gateway.problems import Problem, answers, status_of
from headrace.gateway.registry.registry import in_registry_thread
from headrace.gateway.rest.bodies import Body, TopicName
from headrace.gateway.rest.delivery import Failed
from headrace.gateway.rest.hub import Hub, HubDep
from headrace.gateway.rest.media import json_answer
from headrace.gateway.rest.splitter import NotAnObject, Splitter
from headrace.gateway.rest.topic_cache import PartitionCheck
from headrace.gateway.rest.v3_produce import (
    TOO_COSTLY,
    Prepared,
    RecordV3,
    failure_of,
    has_schema,
    prepare,
    read_record,
    report_of,
)
from headrace.gateway.rest.v3_resources import Fields, Links, LinksDep, V3Router

router = V3Router()

MAX_RECORD_BYTES: Final = 16 * 1024 * 1024  # of one record in a stream
SPARE_BYTES: Final = 1024 * 1024  # so long before the limit of a body, a stream is ended with an error report
MAX_RECORDS: Final = 10_000  # in a batch, or in a body that is not a stream
TURN: Final = 200  # records after which other requests have their turn on the event loop
MAX_HELD_BYTES: Final = 16 * 1024 * 1024  # of encoded records that a request holds before it sends them
_REFUSALS: Final = answers(413, 415, 422)
_SCHEMA: Final = RecordV3.model_json_schema(ref_template="#/components/schemas/{model}")
del _SCHEMA["$defs"]  # BatchV3 brings them into the OpenAPI document
_BODY: Final = {"requestBody": {"required": True, "content": {"application/json": {"schema": _SCHEMA}}}}

Given = TypeVar("Given")
Refused = Problem | ClientError


class RecordProducer:
    """Produces the records of one request, and makes the reports."""

    def __init__(self, hub: Hub, links: Links, topic: str) -> None:
        self._hub = hub
        self._links = links
        self._topic = topic
        self._too_costly: Problem | None = None  # after it, no record is encoded by a schema any more

    async def produce(self, given: Sequence[Given], read: Callable[[Given], RecordV3]) -> list[Fields]:
        """Return a report for each record, in order."""
        reports: list[Fields] = []
        async for prepared in self.prepare(given, read):
            reports += await self._send(prepared)
        return reports

    async def prepare(
        self, given: Sequence[Given], read: Callable[[Given], RecordV3]
    ) -> AsyncIterator[list[Prepared | Refused]]:
        """Yield the encoded records, or the error of each; other requests have their turn meanwhile.

        There is one list, unless the encoded records are large: a schema's defaults can make much of little.
        """
        partitions = PartitionCheck(self._hub.topics, self._topic)
        prepared: list[Prepared | Refused] = []
        held_bytes = 0
        for number, each in enumerate(given):
            await _take_turns(number)
            try:
                record = read(each)
                await partitions.check(record.partition_id)
                prepared.append(ready := await self._prepare(record))
                held_bytes += len(ready.record.key or b"") + len(ready.record.value or b"")
            except (Problem, ClientError) as error:
                prepared.append(error)
            if held_bytes > MAX_HELD_BYTES:
                yield prepared
                prepared, held_bytes = [], 0
        yield prepared

    async def _prepare(self, record: RecordV3) -> Prepared:
        """Return the encoded record. Only one record of a request may be too costly for its schema."""
        encode = partial(prepare, record, self._topic, lambda: self._hub.schemas)
        if not has_schema(record):
            return encode()
        if self._too_costly is not None:
            raise self._too_costly
        try:
            return await in_registry_thread(encode)
        except Problem as problem:
            if problem.code == TOO_COSTLY:
                self._too_costly = problem
            raise

    async def _send(self, prepared: Sequence[Prepared | Refused]) -> list[Fields]:
        ready = [each for each in prepared if isinstance(each, Prepared)]
        outcomes = iter(await self._hub.send(self._topic, [each.record for each in ready]))
        reports: list[Fields] = []
        for number, each in enumerate(prepared):
            await _take_turns(number)
            if not isinstance(each, Prepared):
                reports.append(failure_of(each))
                continue
            outcome = next(outcomes)
            if isinstance(outcome, Failed):
                reports.append(failure_of(outcome.error))
            else:
                reports.append(report_of(outcome, each, self._links.cluster_id, self._topic))
        return reports


async def _take_turns(number: int) -> None:
    if number % TURN == TURN - 1:
        await asyncio.sleep(0)


@router.post(
    "/topics/{topic_name}/records",
    response_class=Response,
    responses={200: {"content": {"application/json": {"schema": {}}}}, **_REFUSALS},
    openapi_extra=_BODY,
)
async def produce(topic_name: TopicName, request: Request, links: LinksDep, hub: HubDep) -> Response:
    """Take one JSON object for each record, one after the other, and respond with a line for each, in order.

    A chunked body is a stream: it is answered while it arrives, and lasts as long as the client likes. The
    `error_code` 200 means that all in-sync replicas have the record. The status of the response is that of
    the record if there is one, and 200 if there are several.
    """
    given = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if given != "application/json":
        raise Problem(415, f"the content type is {given!r}: expected application/json")
    await hub.topics.partitions(topic_name)
    producer = RecordProducer(hub, links, topic_name)
    if "content-length" not in request.headers:
        return StreamedResponse(_lines(request, producer, hub.reach.settings.max_request_bytes))
    splitter = Splitter(hub.reach.settings.max_request_bytes)
    try:
        body = await request.body()
        texts = await run_in_threadpool(lambda: list(islice(splitter.feed(body), MAX_RECORDS + 1)))
        if len(texts) > MAX_RECORDS:
            why = f"a body may have {MAX_RECORDS:,} records; a stream (chunked) may have any number"
            raise Problem(413, why)
        splitter.finish()
    except NotAnObject as error:
        raise Problem(400, str(error)) from None
    if not texts:
        raise Problem(400, "there is no record in the body")
    reports = await producer.produce(texts, read_record)
    if len(reports) == 1:
        return json_answer(reports[0], status_of(reports[0]["error_code"]))
    return Response(b"".join(map(_line, reports)), media_type="application/json")


async def _lines(request: Request, producer: RecordProducer, max_bytes: int) -> AsyncIterator[bytes]:
    """Yield the reports of a stream as its records are produced."""
    splitter = Splitter(MAX_RECORD_BYTES)
    received = 0
    try:
        async for chunk in request.stream():
            received += len(chunk)
            texts = list(splitter.feed(chunk))
            if texts:
                yield b"".join(map(_line, await producer.produce(texts, read_record)))
            if received > max_bytes - SPARE_BYTES:
                why = f"this stream has {received:,} bytes, the most that one may have: start another"
                yield _line({"error_code": 413, "message": why})
                return
        splitter.finish()
    except NotAnObject as error:
        yield _line({"error_code": 400, "message": str(error)})
    except ClientDisconnect:
        return  # the complete records are produced, and nobody reads a report


def _line(report: Fields) -> bytes:
    return write_json(report) + b"\n"


class StreamedResponse(Response):
    """A response that is sent while the request still arrives.

    Starlette's StreamingResponse would wait for the client's disconnect meanwhile, and so take parts of the
    request.
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


class EntryV3(RecordV3):
    """A record of a batch, with an id by which the response names it."""

    id: Annotated[StrictStr, Field(min_length=1, max_length=80)]


class BatchV3(Body):
    entries: Annotated[list[EntryV3], Field(min_length=1, max_length=MAX_RECORDS)]


@router.post("/topics/{topic_name}/records:batch", status_code=207, responses=_REFUSALS)
async def produce_batch(topic_name: TopicName, body: BatchV3, links: LinksDep, hub: HubDep) -> Response:
    """Produce the records, and respond with a report for the id of each."""
    if len({each.id for each in body.entries}) != len(body.entries):
        raise Problem(400, "an id is used twice")
    await hub.topics.partitions(topic_name)
    reports = await RecordProducer(hub, links, topic_name).produce(body.entries, lambda entry: entry)
    answer: dict[str, list[Fields]] = {"successes": [], "failures": []}
    for entry, report in zip(body.entries, reports, strict=True):
        is_produced = report["error_code"] == 200
        if is_produced:
            del report["error_code"]
        answer["successes" if is_produced else "failures"].append({"id": entry.id, **report})
    return json_answer(answer, 207)
