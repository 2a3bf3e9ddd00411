"""Every topic, and making new ones."""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.cluster.topic_overview import TopicOverview
from headrace.client.wire.brokers import Brokers
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.state import Console
from headrace.http.console.tables import Table, table_of
from headrace.http.console.topic_list import CHEAP, Listed, completed, read_list
from headrace.http.reach import Reached

router = APIRouter(route_class=PageRoute, include_in_schema=False)

COLUMNS: Final = {
    "name": lambda each: each.name,
    "partitions": lambda each: each.partitions,
    "replicas": lambda each: each.replicas,
    "records": lambda each: each.records,
    "size": lambda each: each.size_bytes,
    "sick": lambda each: each.under_replicated + each.leaderless,
}


@router.get("/ui/topics")
def topics(request: Request, reach: Reached) -> Response:
    """Topics whose names begin with `_` are those that programs keep for themselves."""
    console: Console = request.app.state.console
    hidden = "internal" not in request.query_params
    listed = console.topics.get(request, lambda: read_list(reach.brokers))
    lines = listed.lines
    shown = [each for each in lines if not (hidden and each.name.startswith("_"))]
    table = _page(request, console, reach.brokers, listed, shown)
    return page(
        request,
        "topics.html",
        title="Topics",
        table=table,
        internal=sum(each.name.startswith("_") for each in lines),
        hidden=hidden,
    )


def _page(
    request: Request, console: Console, brokers: Brokers, listed: Listed, shown: Sequence[TopicOverview]
) -> Table[TopicOverview]:
    """A page of the list; to sort by records or bytes, all of them have to be known."""
    if request.query_params.get("sort", "name").removeprefix("-") in CHEAP:
        table = _table(request, shown)
        return table.with_rows(completed(brokers, listed, table.rows))
    whole = console.whole_topics.get(request, lambda: completed(brokers, listed, listed.lines))
    names = {each.name for each in shown}
    return _table(request, [each for each in whole if each.name in names])


def _table(request: Request, lines: Sequence[TopicOverview]) -> Table[TopicOverview]:
    return table_of(request, lines, COLUMNS, text=lambda each: each.name, sort="name")
