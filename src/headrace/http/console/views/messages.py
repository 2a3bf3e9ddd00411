"""A topic's messages: the newest, or those that somebody looks for. Live ones come by script."""

import json
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.records.following import written
from headrace.client.records.scanning import Scan
from headrace.http.admin import topics
from headrace.http.admin.search import Search
from headrace.http.admin.topics import TopicAnswer
from headrace.http.console import asked as asking
from headrace.http.console.asked import LIMITS, SCANNED, Asked
from headrace.http.console.pages import PageRoute
from headrace.http.console.tables import path_of
from headrace.http.console.views.topic import topic_page
from headrace.http.gateway.bodies import TopicName
from headrace.http.gateway.hub import Hub, Shared
from headrace.http.reach import Reached

VALUE_BYTES: Final = 32 * 1024  # of a message that a page shows
PREVIEW: Final = 240  # characters of it in the list

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/ui/topics/{name}")
async def messages(request: Request, name: TopicName, reach: Reached, hub: Shared) -> Response:
    """What is wrong with a search is said above the list, not instead of the page."""
    topic = await to_thread.run_sync(topics.topic, name, reach)
    found: Scan[bytes] | None = None
    rows: list[dict[str, Any]] = []
    asked, problem = Asked(), ""
    try:
        asked = asking.read(request.query_params)
        found, rows = await hub.search(partial(_found, hub, topic, asked))
    except (NoSuchTopic, Unreachable):
        raise
    except ClientError as error:
        problem = str(error)
    render = partial(
        topic_page,
        request,
        reach,
        "Messages",
        topic,
        asked=asked,
        rows=rows,
        found=found,
        problem=problem,
        limits=LIMITS,
        scanned=SCANNED,
        more=_more(request, found),
        json=_json(topic, asked) if not problem else "",
    )
    return await to_thread.run_sync(render)


def _found(hub: Hub, topic: TopicAnswer, asked: Asked) -> tuple[Scan[bytes], list[dict[str, Any]]]:
    """The search of the admin API, with what a form says."""
    start = asked.start()
    search = Search(
        partition=asked.partition,
        offset=None if asked.after else start.offset,
        time=None if asked.after else start.time_ms,
        last=start.last,
        from_=asked.after or None,
        limit=asked.limit,
        key=asked.key or None,
        text=asked.text or None,
        scan=SCANNED,
        max_value_bytes=VALUE_BYTES,
    )
    found = search.run(hub, topic.name)
    return found, [_row(json.loads(each)) for each in found.found]


def _more(request: Request, found: Scan[bytes] | None) -> str:
    """Where the search goes on, if it was cut short: onwards, or from the newest back."""
    if found is None or found.stopped_by == "end":
        return ""
    fields = {**request.query_params, "after": written(found.next_offsets)}
    return f"{path_of(request)}?{urlencode(fields)}"


def _json(topic: TopicAnswer, asked: Asked) -> str:
    """The same search, for programs."""
    start = asked.start()
    fields = {
        "partition": asked.partition,
        "offset": start.offset,
        "time": start.time_ms,
        "last": start.last,
        "key": asked.key or None,
        "text": asked.text or None,
        "limit": asked.limit,
    }
    if asked.after:
        fields |= {"offset": None, "time": None, "from": asked.after}
    said = {name: value for name, value in fields.items() if value is not None}
    return f"/api/v1/topics/{topic.name}/messages?{urlencode(said)}"


def _row(message: dict[str, Any]) -> dict[str, Any]:
    """A message with its key and value as one line, and in full."""
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
    return None if text is None else _sound(" ".join(text[: PREVIEW * 4].split())[:PREVIEW])


def _full(value: object) -> str | None:
    text = value if isinstance(value, str | None) else json.dumps(value, indent=2, ensure_ascii=False)
    return None if text is None else _sound(text)


def _sound(text: str) -> str:
    """JSON may name half of a pair of surrogates, for which a page has no bytes."""
    return text.encode("utf-8", "backslashreplace").decode()
