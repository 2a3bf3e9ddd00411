"""Every topic, and making new ones."""

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.topic_overview import TopicOverview
from headrace.http.admin import topics as admin
from headrace.http.console.lately import Lately
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import table_of
from headrace.http.reach import Reached

router = APIRouter(route_class=PageRoute, include_in_schema=False)

COLUMNS = {
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
    lately: Lately[list[TopicOverview]] = request.app.state.console.topics
    every = lately.get(request, lambda: admin.topics(reach, internal=True))
    hidden = "internal" not in request.query_params
    shown = [each for each in every if not (hidden and each.name.startswith("_"))]
    return page(
        request,
        "topics.html",
        title="Topics",
        table=table_of(request, shown, COLUMNS, text=lambda each: each.name, sort="name"),
        internal=len(every) - len(shown) if hidden else sum(each.name.startswith("_") for each in every),
        hidden=hidden,
    )
