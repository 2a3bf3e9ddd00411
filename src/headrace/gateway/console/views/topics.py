"""The list of topics. Metadata has some columns of all topics; the others are read for the rows of a page.

For ten thousand partitions, offsets, bytes and settings take most of a second; for one page they take little.
"""

from collections.abc import Sequence
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.cluster.topic_overview import TopicList, TopicOverview, read_topics
from headrace.client.wire.brokers import Brokers
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import Table, by_attributes, table_of
from headrace.gateway.console.views.cluster import is_internal
from headrace.gateway.current import clients_of
from headrace.gateway.reach import ReachDep

router = APIRouter(route_class=PageRoute, include_in_schema=False)

COLUMNS: Final = {
    **by_attributes("name", "partitions", "replicas", "records", size="size_bytes"),
    "worst": lambda row: (row.severity, is_internal(row.name), row.name),
}
COMMON: Final = (
    "cleanup.policy",
    "retention.ms",
    "retention.bytes",
    "min.insync.replicas",
    "max.message.bytes",
)
"""The settings that the form of a new topic shows first."""
METADATA_COLUMNS: Final = {"name", "partitions", "replicas", "worst"}
"""To sort by another column, it has to be read for all topics."""


@router.get("/ui/topics")
def topics(request: Request, reach: ReachDep) -> Response:
    """The worst come first. Internal topics are hidden unless the address has `internal`."""
    hidden = "internal" not in request.query_params
    found: TopicList = clients_of(request).console.topics.get(request, lambda: read_topics(reach.brokers))
    rows = found.rows
    return page(
        request,
        "topics.html",
        title="Topics",
        table=_table(
            request, reach.brokers, found, [row for row in rows if not (hidden and is_internal(row.name))]
        ),
        internal=sum(is_internal(row.name) for row in rows),
        hidden=hidden,
    )


@router.get("/ui/new-topic")
def new_topic(request: Request, reach: ReachDep) -> Response:
    return page(
        request,
        "new_topic.html",
        title="Create a topic",
        configs=reach.documented.of_new_topic(),
        common=COMMON,
        brokers=len(reach.brokers.nodes()),
    )


def _table(
    request: Request, brokers: Brokers, found: TopicList, shown: Sequence[TopicOverview]
) -> Table[TopicOverview]:
    by_metadata = request.query_params.get("sort", "worst").removeprefix("-") in METADATA_COLUMNS
    if not by_metadata:
        names = {each.name for each in shown}
        every: list[TopicOverview] = clients_of(request).console.whole_topics.get(
            request, lambda: found.complete(brokers)
        )
        shown = [each for each in every if each.name in names]
    table = table_of(request, shown, COLUMNS, text=lambda row: row.name, sort="worst")
    if not by_metadata:
        return table
    return table.with_rows(found.complete(brokers, [row.name for row in table.rows]))
