"""A topic's messages: the newest, or those that somebody looks for. Live ones come by script."""

import json
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.following import written
from headrace.client.scanning import Bounds, Scan, scan
from headrace.http.admin import topics
from headrace.http.admin.showing import Matches, shown
from headrace.http.admin.topics import TopicAnswer
from headrace.http.console import asked as asking
from headrace.http.console.asked import LIMITS, SCANNED, Asked
from headrace.http.console.pages import PageRoute
from headrace.http.console.tables import path_of
from headrace.http.console.views.topic import topic_page
from headrace.http.gateway.asking import TopicName
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.reach import Reached

VALUE_BYTES: Final = 32 * 1024  # of a message that a page shows
PREVIEW: Final = 240  # characters of it in the list
SCANNED_BYTES: Final = 256 * 1024 * 1024
TIME_S: Final = 5.0

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/ui/topics/{name}")
async def messages(request: Request, name: TopicName, reach: Reached, hub: Shared) -> Response:
    """What is wrong with a search is said above the list, not instead of the page."""
    topic = await to_thread.run_sync(topics.topic, name, reach)
    found: Scan | None = None
    asked, problem = Asked(), ""
    try:
        asked = asking.read(request.query_params)
        hub.check_room_to_search()
        found = await to_thread.run_sync(partial(_search, hub, topic, asked), limiter=hub.searching)
    except (NoSuchTopic, Unreachable):
        raise
    except ClientError as error:
        problem = str(error)
    shows = [] if found is None else [_row(shown(each, VALUE_BYTES, hub.by_schema)) for each in found.found]
    render = partial(
        topic_page,
        request,
        reach,
        "Messages",
        topic,
        asked=asked,
        rows=shows,
        found=found,
        problem=problem,
        limits=LIMITS,
        more=_more(request, asked, found),
    )
    return await to_thread.run_sync(render)


def _search(hub: Hub, topic: TopicAnswer, asked: Asked) -> Scan:
    return scan(
        hub.reach.bootstrap,
        topic.name,
        asked.start(1 if asked.partition is not None else len(topic.partitions)),
        fits=Matches(asked.key or None, asked.text or None, hub.by_schema),
        bounds=Bounds(found=asked.limit, records=SCANNED, size_bytes=SCANNED_BYTES, time_s=TIME_S),
        partitions=() if asked.partition is None else [asked.partition],
        positions=asked.positions(),
    )


def _more(request: Request, asked: Asked, found: Scan | None) -> str:
    """Where the search goes on, if it was cut short; after the newest there is nothing."""
    if found is None or found.stopped_by == "end" or asked.where == "newest":
        return ""
    fields = {**request.query_params, "after": written(found.next_offsets)}
    return f"{path_of(request)}?{urlencode(fields)}"


def _row(message: dict[str, Any]) -> dict[str, Any]:
    """A message with its key and value as one line, and in full."""
    return {
        **message,
        "key_line": _line(message["key"]),
        "value_line": _line(message["value"]),
        "key_full": _full(message["key"]),
        "value_full": _full(message["value"]),
    }


def _line(value: object) -> str | None:
    text = value if isinstance(value, str | None) else json.dumps(value, ensure_ascii=False)
    return None if text is None else " ".join(text[: PREVIEW * 4].split())[:PREVIEW]


def _full(value: object) -> str | None:
    return value if isinstance(value, str | None) else json.dumps(value, indent=2, ensure_ascii=False)
