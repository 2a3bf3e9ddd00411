"""Topics: the list, the form of a new one, and the partitions, settings and groups of one.

Metadata has some columns of all topics; the others are read for the rows of a page. For ten thousand
partitions, offsets, bytes and settings take most of a second; for one page they take little.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from headrace.client.admin.topics import Config
from headrace.client.cluster.reading import MIN_IN_SYNC
from headrace.client.cluster.status import PartitionState
from headrace.client.cluster.topic_overview import TopicList, TopicOverview, read_topics
from headrace.client.groups.group import lag_of
from headrace.client.wire.brokers import Brokers
from headrace.gateway.admin import topics as api
from headrace.gateway.admin.topics import TopicAnswer
from headrace.gateway.console.diagnosis import diagnose
from headrace.gateway.console.formats import UNKNOWN
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import Table, by_attributes, table_of
from headrace.gateway.console.views.cluster import is_internal, settings_table
from headrace.gateway.console.views.groups import GroupRow, described
from headrace.gateway.current import clients_of
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import TopicName
from headrace.protocol.ids import TopicPartition

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


_PARTITION_COLUMNS = {
    "worst": lambda row: (row.leader is not None, len(row.in_sync) - len(row.replicas), row.index),
    **by_attributes(
        "index", "leader", "records", start="start_offset", next="next_offset", size="size_bytes"
    ),
}


@router.get("/ui/topics/{name}/partitions")
def partitions(request: Request, name: TopicName, reach: ReachDep) -> Response:
    found = api.topic(name, reach)
    table = table_of(
        request, found.partitions, _PARTITION_COLUMNS, text=lambda row: str(row.index), sort="worst", size=100
    )
    return topic_page(request, reach, "Partitions", found, table=table)


@router.get("/ui/topics/{name}/settings")
def settings(request: Request, name: TopicName, reach: ReachDep) -> Response:
    found = api.topic(name, reach)
    configs = reach.documented.of_topic(name)
    return topic_page(
        request,
        reach,
        "Settings",
        found,
        known=configs,
        configs=settings_table(request, configs),
        only_set="set" in request.query_params,
        owner="topic",
        change=f"/api/v1/topics/{name}/configs",
        of=name,
    )


@router.get("/ui/topics/{name}/groups")
def groups(request: Request, name: TopicName, reach: ReachDep) -> Response:
    found = api.topic(name, reach)
    every, left_out = described(reach)
    reading = [
        GroupRow(
            name=each.name,
            state=each.state,
            members=len(each.members),
            lag=lag_of(at for at in each.partitions if at.topic == name),
            uncommitted=sum(at.topic == name and at.committed is None for at in each.partitions),
        )
        for each in every
        if any(at.topic == name for at in each.partitions)
    ]
    return topic_page(request, reach, "Groups", found, groups=reading, left_out=left_out)


_PRODUCER_COLUMNS = {
    **by_attributes(producer="producer_id", epoch="producer_epoch"),
    **by_attributes(sequence="last_sequence", last="last_timestamp_ms", start="start_offset"),
}


@router.get("/ui/topics/{name}/producers")
def producers(
    request: Request,
    name: TopicName,
    reach: ReachDep,
    partition: Annotated[str, Query(pattern="^[0-9]{0,9}$")] = "",
) -> Response:
    """Producers with open transactions come first."""
    found = api.topic(name, reach)
    led = [each.index for each in found.partitions if each.leader is not None]
    index = int(partition or min(led, default=0))
    at = TopicPartition(name, index)
    offline = any(each.index == index and each.leader is None for each in found.partitions)
    active = [] if offline else reach.transactions.describe_producers(name, index)
    table = table_of(request, active, _PRODUCER_COLUMNS, text=lambda row: str(row.producer_id), sort="start")
    return topic_page(
        request,
        reach,
        "Producers",
        found,
        table=table,
        partition=index,
        end=None if offline else reach.transactions.ends([at])[at],
    )


def topic_page(
    request: Request,
    reach: Reach,
    tab: str,
    topic: TopicAnswer,
    *,
    known: Sequence[Config] | None = None,
    **context: Any,
) -> Response:
    """Return a tab of a topic's page, which says what is wrong with its partitions."""
    configs = reach.topics.configs(topic.name) if known is None else known
    values = {config.name: config.value for config in configs}
    live = {node.id for node in reach.brokers.nodes()}
    min_in_sync = int(values.get(MIN_IN_SYNC) or 1)
    states = (
        PartitionState(
            topic=topic.name,
            partition=partition.index,
            leader=partition.leader,
            replicas=partition.replicas,
            in_sync=partition.in_sync,
            min_in_sync=min(min_in_sync, len(partition.replicas)),
        )
        for partition in topic.partitions
    )
    return page(
        request,
        f"topic_{tab.lower()}.html",
        title=f"{topic.name}: {tab.lower()}",
        topic=topic,
        tab=tab,
        policy=values.get("cleanup.policy") or UNKNOWN,
        findings=diagnose(states, live),
        **context,
    )
