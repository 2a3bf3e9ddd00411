"""One topic: its partitions, settings and groups. Its messages have their own view."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from headrace.client.admin.topics import Config
from headrace.client.cluster.reading import MIN_IN_SYNC
from headrace.client.cluster.status import PartitionState
from headrace.client.groups.group import lag_of
from headrace.gateway.admin import topics
from headrace.gateway.admin.topics import TopicAnswer
from headrace.gateway.console.diagnosis import diagnose
from headrace.gateway.console.formats import UNKNOWN
from headrace.gateway.console.pages import PageRoute, page
from headrace.gateway.console.tables import by_attributes, table_of
from headrace.gateway.console.views.cluster import settings_table
from headrace.gateway.console.views.groups import GroupRow, described
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import TopicName
from headrace.protocol.ids import TopicPartition

router = APIRouter(route_class=PageRoute, include_in_schema=False)

_PARTITION_COLUMNS = {
    "worst": lambda row: (row.leader is not None, len(row.in_sync) - len(row.replicas), row.index),
    **by_attributes(
        "index", "leader", "records", start="start_offset", next="next_offset", size="size_bytes"
    ),
}


@router.get("/ui/topics/{name}/partitions")
def partitions(request: Request, name: TopicName, reach: ReachDep) -> Response:
    found = topics.topic(name, reach)
    table = table_of(
        request, found.partitions, _PARTITION_COLUMNS, text=lambda row: str(row.index), sort="worst", size=100
    )
    return topic_page(request, reach, "Partitions", found, table=table)


@router.get("/ui/topics/{name}/settings")
def settings(request: Request, name: TopicName, reach: ReachDep) -> Response:
    found = topics.topic(name, reach)
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
    found = topics.topic(name, reach)
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
    **by_attributes(sequence="last_sequence", last="last_timestamp_ms"),
    "start": lambda row: None if row.start_offset is None else (not row.hanging, row.start_offset),
}


@router.get("/ui/topics/{name}/producers")
def producers(
    request: Request,
    name: TopicName,
    reach: ReachDep,
    partition: Annotated[str, Query(pattern="^[0-9]{0,9}$")] = "",
) -> Response:
    """Producers with hanging transactions come first, then those with other open ones."""
    found = topics.topic(name, reach)
    led = [each.index for each in found.partitions if each.leader is not None]
    index = int(partition or min(led, default=0))
    at = TopicPartition(name, index)
    offline = any(each.index == index and each.leader is None for each in found.partitions)
    active = [] if offline else reach.transactions.active_producers(name, index)
    table = table_of(
        request,
        active,
        _PRODUCER_COLUMNS,
        text=lambda row: f"{row.producer_id} {row.transactional_id or ''}",
        sort="start",
    )
    return topic_page(
        request,
        reach,
        "Producers",
        found,
        table=table,
        partition=index,
        end=None if offline else reach.transactions.ends([at])[at],
        hanging=sum(producer.hanging is True for producer in active),
        unknown=any(producer.hanging is None for producer in active),
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
