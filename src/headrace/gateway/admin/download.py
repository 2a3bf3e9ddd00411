"""Download of the messages that a search finds, as JSON, CSV or Parquet."""

import time
from collections.abc import AsyncIterator
from functools import partial
from importlib.util import find_spec
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from headrace.client.records.following import written
from headrace.client.records.scanning import Scan
from headrace.gateway.admin.export import CsvExport, Export, JsonExport
from headrace.gateway.admin.search import Search
from headrace.gateway.problems import Problem, answers
from headrace.gateway.rest.bodies import TopicName
from headrace.gateway.rest.hub import Hub, HubDep

router = APIRouter(tags=["messages"])

MOST: Final = 100_000  # messages
BYTES: Final = 64 * 1024 * 1024  # of messages as JSON
TIME_S: Final = 60.0
PAGE: Final = 1000  # messages that are in memory at a time
_TYPES: Final = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}


def has_parquet() -> bool:
    """Return whether pyarrow is installed, which writes Parquet."""
    return find_spec("pyarrow") is not None


@router.get(
    "/topics/{name}/messages/download",
    response_class=StreamingResponse,
    responses={
        200: {"content": {each.partition(";")[0]: {} for each in _TYPES.values()}},
        **answers(400, 404, 429, 503),
    },
    summary="Download messages",
)
async def download(
    name: TopicName,
    request: Request,
    search: Annotated[Search, Depends()],
    hub: HubDep,
    *,
    format: Annotated[  # noqa: A002  the name of the parameter
        Literal["json", "csv", "parquet"], Query(description="`parquet` needs the extra `arrow`.")
    ] = "json",
    most: Annotated[int, Query(description="Most messages to download.", ge=1, le=MOST)] = 10_000,
) -> StreamingResponse:
    """Download what a search with the same parameters finds; `limit` does not apply.

    The download ends after `most` messages, `scan` messages that were read, 64 MiB or 60 seconds. JSON ends
    with `stopped_by`, `next` and `offline`, the partitions without a leader, which are not in the file.
    Parquet has them in its metadata; a CSV file has no place for them. If a partition has no leader, the name
    of the file says `incomplete`.
    """
    if format == "parquet" and not has_parquet():
        raise Problem(
            50101, "Parquet needs pyarrow, which is not installed here: pip install 'headrace[arrow]'"
        )
    await hub.topics.check(name, search.partition)
    export = await run_in_threadpool(_export, format, name)
    pages = _Pages(request, hub, name, search, most)
    first = await pages.read()  # errors of the search are still a refusal
    file = f"{name}-incomplete.{format}" if pages.offline else f"{name}.{format}"
    headers = {"Content-Disposition": f'attachment; filename="{file}"', "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(_stream(export, pages, first), media_type=_TYPES[format], headers=headers)


def _export(format_: str, topic: str) -> Export:
    if format_ != "parquet":
        return JsonExport(topic) if format_ == "json" else CsvExport()
    from headrace.gateway.admin.parquet_export import ParquetExport  # noqa: PLC0415  pyarrow takes long to load

    return ParquetExport()


async def _stream(export: Export, pages: "_Pages", first: Scan[bytes]) -> AsyncIterator[bytes]:
    found: Scan[bytes] | None = first
    while found is not None:
        yield await run_in_threadpool(export.rows, found.found)
        last, found = found, await pages.next(found)
    yield await run_in_threadpool(
        export.end, pages.stopped_by, written(last.next_offsets), sorted(pages.offline)
    )


class _Pages:
    """The results of a search, PAGE messages at a time."""

    def __init__(self, request: Request, hub: Hub, topic: str, search: Search, most: int) -> None:
        self._request, self._hub, self._topic, self._search = request, hub, topic, search
        self._left, self._left_bytes, self._left_records = most, BYTES, search.bounds.records
        self._deadline_s = time.monotonic() + TIME_S
        self.stopped_by = "end"
        self.offline: set[int] = set()  # partitions that had no leader when they were to be read

    async def read(self) -> Scan[bytes]:
        """Return the next messages."""
        self._search.narrow(min(self._left, PAGE), self._left_records)
        found = await self._hub.search(self._request, partial(self._search.run, self._hub, self._topic))
        self.offline.update(self._search.offline)
        return found

    async def next(self, found: Scan[bytes]) -> Scan[bytes] | None:
        """Return the messages after `found`, or None at the end or at a bound, which `stopped_by` names."""
        self._left -= len(found.found)
        self._left_bytes -= sum(map(len, found.found))
        self._left_records -= found.records
        if found.stopped_by == "end":
            return None
        for bound, is_reached in (
            ("limit", self._left <= 0),
            ("bytes", self._left_bytes <= 0),
            ("records", self._left_records <= 0),
            ("time", time.monotonic() > self._deadline_s),
        ):
            if is_reached:
                self.stopped_by = bound
                return None
        self._search.go_on(found.next_offsets)
        return await self.read()
