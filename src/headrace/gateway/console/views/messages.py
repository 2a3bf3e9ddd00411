"""A topic's messages: the newest, or the result of a search by a form. A script shows live ones."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Event
from typing import Any, Final
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError, NoSuchTopic
from headrace.client.records.following import written
from headrace.client.records.one_by_one import Start
from headrace.client.records.scanning import Scan
from headrace.gateway.admin import topics
from headrace.gateway.admin.search import Search
from headrace.gateway.console.pages import PageRoute
from headrace.gateway.console.tables import path_of
from headrace.gateway.console.views.topics import topic_page
from headrace.gateway.problems import printable
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import TopicName
from headrace.gateway.rest.hub import HubDep

LIMITS: Final = (20, 50, 100, 500)
SCANNED: Final = 200_000  # most messages that one search scans
LONGEST: Final = 1000  # most characters of a key or a text
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?")
_MAX_INT: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchForm:
    """A search. Offset and time are kept as they were typed, so that the page can show them again."""

    where: str = "newest"  # newest, beginning, offset, time
    partition: int | None = None
    offset: str = ""
    time: str = ""
    zone_min: int = 0  # minutes that the browser's clock is ahead of UTC
    key: str = ""
    text: str = ""
    filter: str = ""  # a CEL expression
    limit: int = 50
    after: str = ""  # continue here: partition:offset,…

    @property
    def filters(self) -> bool:
        return bool(self.key or self.text or self.filter)

    @property
    def time_field(self) -> str:
        """The time if an input of type datetime-local can show it."""
        return self.time if _TIME.fullmatch(self.time) else ""

    def start(self) -> Start:
        """Return where the search starts; raise ClientError if that field is missing or invalid."""
        match self.where:
            case "beginning":
                return Start()
            case "offset":
                return Start(offset=_whole(self.offset, "offset"))
            case "time":
                return Start(time_ms=self.time_ms())
            case _:
                return Start(last=SCANNED)  # newest first, until `limit` messages are found

    def time_ms(self) -> int:
        """Return the time: milliseconds, or date and time of the browser's clock."""
        if self.time.isascii() and self.time.isdigit():
            return _whole(self.time, "time")
        try:
            at = datetime.fromisoformat(self.time)
            if at.tzinfo is None:
                at = (at - timedelta(minutes=self.zone_min)).replace(tzinfo=UTC)
            return max(0, int(at.timestamp() * 1000))
        except (ValueError, OverflowError):
            raise ClientError(
                f"{self.time[:50]!r} is not a time: expected one such as 2026-11-15T18:20, or milliseconds"
            ) from None


def read_form(fields: Mapping[str, str]) -> SearchForm:
    """Return the search of a form's fields; raise ClientError if one is invalid."""
    partition, limit, zone = fields.get("partition", ""), fields.get("limit", ""), fields.get("zone", "")
    return SearchForm(
        where=fields.get("where", "newest"),
        partition=_whole(partition, "partition") if partition else None,
        offset=fields.get("offset", "").strip(),
        time=fields.get("time", "").strip(),
        zone_min=int(zone) if zone.removeprefix("-").isdecimal() and len(zone) < 6 else 0,
        key=fields.get("key", "")[:LONGEST],
        text=fields.get("text", "")[:LONGEST],
        filter=fields.get("filter", "").strip()[:LONGEST],
        limit=int(limit) if limit in map(str, LIMITS) else 50,
        after=fields.get("after", ""),
    )


def _whole(text: str, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _MAX_INT):
        raise ClientError(f"the {what} is {text[:50]!r}: expected a whole number")
    return int(text)


VALUE_BYTES: Final = 32 * 1024  # of a message on the page
PREVIEW: Final = 240  # characters of a message in the list

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/ui/topics/{name}")
async def messages(request: Request, name: TopicName, reach: ReachDep, hub: HubDep) -> Response:
    """An error of the search is shown above the list, not instead of the page.

    A script runs a search with a filter, and shows its progress; without scripts it is part of the page.
    """
    topic = await to_thread.run_sync(topics.topic, name, reach)
    found: Scan[bytes] | None = None
    rows: list[dict[str, Any]] = []
    form, problem, stream = SearchForm(), "", ""
    search: Search | None = None
    try:
        form = read_form(request.query_params)
        search = Search(
            **_parameters(form), from_=form.after or None, scan=SCANNED, max_value_bytes=VALUE_BYTES
        )
        run = partial(search.run, hub, topic.name)

        def search_and_parse(cancelled: Event) -> tuple[Scan[bytes], list[dict[str, Any]]]:
            """Run in a thread: there may be megabytes of JSON to parse."""
            scan = run(cancelled)
            return scan, [_row(json.loads(message)) for message in scan.found]

        if form.filters and "plain" not in request.query_params:
            stream = _address(name, "messages/stream", form, scan=SCANNED, max_value_bytes=VALUE_BYTES)
        else:
            found, rows = await hub.search(request, search_and_parse)
    except NoSuchTopic:
        raise
    except ClientError as error:
        problem = str(error)
    more = ""  # the address where the search continues, if it was cut short
    if found is not None and found.stopped_by != "end":
        fields = {**request.query_params, "after": written(found.next_offsets)}
        more = f"{path_of(request)}?{urlencode(fields)}"
    render = partial(
        topic_page,
        request,
        reach,
        "Messages",
        topic,
        form=form,
        rows=rows,
        found=found,
        problem=problem,
        search=search,
        limits=LIMITS,
        scanned=SCANNED,
        more=more,
        json="" if problem else _address(name, "messages", form),
        stream=stream,
        plain=f"{path_of(request)}?{urlencode({**request.query_params, 'plain': '1'})}",
    )
    return await to_thread.run_sync(render)


def _parameters(form: SearchForm) -> dict[str, Any]:
    start = form.start()
    given = {
        "partition": form.partition,
        "offset": None if form.after else start.offset,
        "time": None if form.after else start.time_ms,
        "last": start.last,
        "key": form.key or None,
        "text": form.text or None,
        "filter": form.filter or None,
        "limit": form.limit,
    }
    return {name: value for name, value in given.items() if value is not None}


def _address(topic: str, path: str, form: SearchForm, **bounds: int) -> str:
    """Return the address of the same search in the API."""
    given = _parameters(form) | ({"from": form.after} if form.after else {}) | bounds
    return f"/api/v1/topics/{topic}/{path}?{urlencode(given)}"


def _row(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with its key and value both as one line and in full."""
    return {
        **message,
        "key_line": _line(message["key"]),
        "value_line": _line(message["value"]),
        "key_full": _full(message["key"]),
        "value_full": _full(message["value"]),
        "headers": [{"name": each["name"], "value": _full(each["value"])} for each in message["headers"]],
    }


def _line(value: object) -> str | None:
    text = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
    return None if text is None else printable(" ".join(text[: PREVIEW * 4].split())[:PREVIEW])


def _full(value: object) -> str | None:
    text = value if isinstance(value, str | None) else json.dumps(value, indent=2, ensure_ascii=False)
    return None if text is None else printable(text)
