"""The list of topics. Metadata has some columns of all topics; the others are read for the rows of a page.

For ten thousand partitions, offsets, bytes and settings take most of a second; for one page they take little.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.admin.topics import read_spans
from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.reading import read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.cluster.topic_overview import TopicOverview, read_shown, whole
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.client.wire.requests import nodes_of
from headrace.http.console.pages import PageRoute, page
from headrace.http.console.tables import Table, table_of
from headrace.http.reach import ReachDep
from headrace.protocol.schema.metadata import MetadataResponse

router = APIRouter(route_class=PageRoute, include_in_schema=False)

COLUMNS: Final = {
    "name": lambda each: each.name,
    "partitions": lambda each: each.partitions,
    "replicas": lambda each: each.replicas,
    "records": lambda each: each.records,
    "size": lambda each: each.size_bytes,
    "sick": lambda each: each.under_replicated + each.leaderless,
}
METADATA_COLUMNS: Final = {"name", "partitions", "replicas", "sick"}
"""To sort by another column, it has to be read for all topics."""


@dataclass(frozen=True, slots=True)
class TopicList:
    """All topics as metadata has them."""

    metadata: MetadataResponse
    partitions: dict[str, list[PartitionState]]

    @property
    def rows(self) -> list[TopicOverview]:
        """Every topic by name, with the columns of METADATA_COLUMNS."""
        internal = {topic.name for topic in self.metadata.topics if topic.is_internal}
        return [_row(name, parts, name in internal) for name, parts in sorted(self.partitions.items())]


@router.get("/ui/topics")
def topics(request: Request, reach: ReachDep) -> Response:
    """Topics whose names begin with `_` are internal, and hidden unless the address has `internal`."""
    hidden = "internal" not in request.query_params
    found: TopicList = request.app.state.console.topics.get(request, lambda: read_list(reach.brokers))
    rows = found.rows
    return page(
        request,
        "topics.html",
        title="Topics",
        table=_table(
            request,
            reach.brokers,
            found,
            [each for each in rows if not (hidden and each.name.startswith("_"))],
        ),
        internal=sum(each.name.startswith("_") for each in rows),
        hidden=hidden,
    )


def _table(
    request: Request, brokers: Brokers, found: TopicList, shown: Sequence[TopicOverview]
) -> Table[TopicOverview]:
    by_metadata = request.query_params.get("sort", "name").removeprefix("-") in METADATA_COLUMNS
    if not by_metadata:
        names = {each.name for each in shown}
        every: list[TopicOverview] = request.app.state.console.whole_topics.get(
            request, lambda: completed(brokers, found, found.rows)
        )
        shown = [each for each in every if each.name in names]
    table = table_of(request, shown, COLUMNS, text=lambda each: each.name, sort="name")
    return table.with_rows(completed(brokers, found, table.rows)) if by_metadata else table


def read_list(brokers: Brokers) -> TopicList:
    """Return all topics, by one request or two."""
    metadata = brokers.metadata(within_s=QUESTION_S)
    partitions: dict[str, list[PartitionState]] = {}
    for each in read_partitions(metadata):
        partitions.setdefault(each.topic, []).append(each)
    return TopicList(metadata, partitions)


def completed(brokers: Brokers, found: TopicList, rows: Sequence[TopicOverview]) -> list[TopicOverview]:
    """Return these rows with records, bytes and settings."""
    names = [each.name for each in rows]
    parts = [part for name in names for part in found.partitions[name]]
    spans = read_spans(brokers, found.metadata, [part.topic_partition for part in parts])
    indexes = {name: [part.partition for part in found.partitions[name]] for name in names}
    replica_bytes = sizes(read_log_dirs(brokers, nodes_of(found.metadata), indexes))
    settings = read_shown(brokers, names)
    done = []
    for row in rows:
        of_topic = found.partitions[row.name]
        counts = [spans.records(each.topic_partition) for each in of_topic]
        known = [count for count in counts if count is not None]
        led = [(each.leader, each.topic_partition) for each in of_topic if each.leader is not None]
        led_bytes = [replica_bytes[each] for each in led if each in replica_bytes]
        done.append(
            replace(
                row,
                records=sum(known) if known else None,
                size_bytes=sum(led_bytes) if led_bytes else None,
                cleanup_policy=settings.get((row.name, "cleanup.policy")),
                retention_ms=whole(settings.get((row.name, "retention.ms"))),
                retention_bytes=whole(settings.get((row.name, "retention.bytes"))),
            )
        )
    return done


def _row(name: str, parts: Sequence[PartitionState], internal: bool) -> TopicOverview:
    return TopicOverview(
        name=name,
        internal=internal,
        partitions=len(parts),
        replicas=max(len(each.replicas) for each in parts),
        records=None,
        size_bytes=None,
        disk_bytes=None,
        under_replicated=sum(bool(each.lacks) for each in parts),
        leaderless=sum(each.leader is None for each in parts),
        cleanup_policy=None,
        retention_ms=None,
        retention_bytes=None,
    )
