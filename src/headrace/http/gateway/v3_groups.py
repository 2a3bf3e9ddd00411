"""REST proxy, v3: consumer groups, their members, and how far they are."""

import re
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path

from headrace.client.groups.group import Group, Member, Progress
from headrace.http.gateway.asking import GROUP, NO_NUL, PartitionId, TopicName
from headrace.http.gateway.v3_envelope import (
    REFUSALS,
    Collection,
    Fields,
    Linked,
    Links,
    Resource,
    V3Route,
)
from headrace.http.problems import Problem
from headrace.http.reach import Reach, Reached

router = APIRouter(
    prefix="/v3/clusters/{cluster_id}/consumer-groups", tags=["REST proxy v3"], route_class=V3Route
)

GroupId = Annotated[
    str,
    Path(
        alias="consumer_group_id",
        description="A group's name.",
        min_length=1,
        max_length=GROUP,
        pattern=NO_NUL,
    ),
]
ConsumerId = Annotated[
    str, Path(alias="consumer_id", description="A member's id.", min_length=1, max_length=1000)
]
_GROUP = "/{consumer_group_id}"


@router.get("", response_model=Collection, responses=REFUSALS, summary="Every group")
def groups(links: Linked, reach: Reached) -> Fields:
    """By name."""
    names = [each.name for each in reach.groups.list_groups()]
    found = reach.groups.describe(names) if names else []
    return links.collection("ConsumerGroup", ["consumer-groups"], (_group(links, each) for each in found))


@router.get(_GROUP, response_model=Resource, responses=REFUSALS, summary="A group")
def group(name: GroupId, links: Linked, reach: Reached) -> Fields:
    """Its state, and who coordinates it."""
    return _group(links, _described(reach, name))


@router.get(f"{_GROUP}/consumers", response_model=Collection, responses=REFUSALS, summary="A group's members")
def consumers(name: GroupId, links: Linked, reach: Reached) -> Fields:
    """Each with the address of what is assigned to it."""
    found = _described(reach, name)
    at = ["consumer-groups", name, "consumers"]
    return links.collection("Consumer", at, (_consumer(links, name, each) for each in found.members))


@router.get(
    f"{_GROUP}/consumers/{{consumer_id}}", response_model=Resource, responses=REFUSALS, summary="A member"
)
def consumer(name: GroupId, member_id: ConsumerId, links: Linked, reach: Reached) -> Fields:
    """By its member id."""
    return _consumer(links, name, _member(reach, name, member_id))


@router.get(
    f"{_GROUP}/consumers/{{consumer_id}}/assignments",
    response_model=Collection,
    responses=REFUSALS,
    summary="What is assigned to a member",
)
def assignments(name: GroupId, member_id: ConsumerId, links: Linked, reach: Reached) -> Fields:
    """Partition by partition."""
    found = _member(reach, name, member_id)
    at = ["consumer-groups", name, "consumers", member_id, "assignments"]
    places = [(each.topic, index) for each in found.assignment for index in each.partitions]
    return links.collection(
        "ConsumerAssignment",
        at,
        (_assignment(links, name, member_id, topic, index) for topic, index in places),
    )


@router.get(f"{_GROUP}/lags", response_model=Collection, responses=REFUSALS, summary="A group's lags")
def lags(name: GroupId, links: Linked, reach: Reached) -> Fields:
    """Of the partitions for which it has committed an offset."""
    found = _described(reach, name)
    known = [each for each in found.partitions if each.lag is not None]
    return links.collection(
        "ConsumerLag", ["consumer-groups", name, "lags"], (_lag(links, found, each) for each in known)
    )


@router.get(
    f"{_GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}",
    response_model=Resource,
    responses=REFUSALS,
    summary="A group's lag in a partition",
)
def lag(
    name: GroupId, topic_name: TopicName, partition_id: PartitionId, links: Linked, reach: Reached
) -> Fields:
    """What is committed, what is there, and the difference."""
    found = _described(reach, name)
    for each in found.partitions:
        if (each.topic, each.partition) == (topic_name, partition_id) and each.lag is not None:
            return _lag(links, found, each)
    said = f"group {name} has committed nothing for {topic_name}-{partition_id}"
    raise Problem(HTTPStatus.NOT_FOUND, 404, said)


@router.get(
    f"{_GROUP}/lag-summary", response_model=Resource, responses=REFUSALS, summary="A group's lag in one"
)
def lag_summary(name: GroupId, links: Linked, reach: Reached) -> Fields:
    """The sum, and where it is largest."""
    found = _described(reach, name)
    known = [each for each in found.partitions if each.lag is not None]
    if not known:
        raise Problem(HTTPStatus.NOT_FOUND, 404, f"group {name} has committed nothing")
    worst = max(known, key=lambda each: each.lag or 0)
    member = _owner(found, worst)
    return links.resource(
        "ConsumerGroupLagSummary",
        ["consumer-groups", name, "lag-summary"],
        f"consumer-group={name}/lag-summary",
        {
            "consumer_group_id": name,
            "max_lag_consumer_id": member.member_id if member else "",
            "max_lag_instance_id": member.instance_id if member else None,
            "max_lag_client_id": member.client_id if member else "",
            "max_lag_topic_name": worst.topic,
            "max_lag_partition_id": worst.partition,
            "max_lag": worst.lag,
            "total_lag": found.total_lag,
            **_max_lag_consumer(links, name, member),
            "max_lag_partition": links.related("topics", worst.topic, "partitions", worst.partition),
        },
    )


def _max_lag_consumer(links: Links, group: str, member: Member | None) -> Fields:
    """Its address; nothing where nobody reads the partition."""
    if member is None:
        return {}
    return {"max_lag_consumer": links.related("consumer-groups", group, "consumers", member.member_id)}


def _described(reach: Reach, name: str) -> Group:
    return reach.groups.describe([name])[0]


def _member(reach: Reach, group: str, member_id: str) -> Member:
    for each in _described(reach, group).members:
        if each.member_id == member_id:
            return each
    raise Problem(HTTPStatus.NOT_FOUND, 404, f"group {group} has no member {member_id}")


def _owner(group: Group, progress: Progress) -> Member | None:
    return next((each for each in group.members if each.member_id == progress.member_id), None)


def _group(links: Links, found: Group) -> Fields:
    at = ["consumer-groups", found.name]
    return links.resource(
        "ConsumerGroup",
        at,
        f"consumer-group={found.name}",
        {
            "consumer_group_id": found.name,
            "is_simple": not found.members and found.assignor is None,
            "partition_assignor": found.assignor or "",
            "state": re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found.state).upper(),
            "type": found.type.upper(),
            "is_mixed_consumer_group": False,
            "coordinator": links.related("brokers", found.coordinator.id),
            "consumers": links.related(*at, "consumers"),
            "lag_summary": links.related(*at, "lag-summary"),
        },
    )


def _consumer(links: Links, group: str, found: Member) -> Fields:
    at = ["consumer-groups", group, "consumers", found.member_id]
    return links.resource(
        "Consumer",
        at,
        f"consumer-group={group}/consumer={found.member_id}",
        {
            "consumer_group_id": group,
            "consumer_id": found.member_id,
            "instance_id": found.instance_id,
            "client_id": found.client_id,
            "assignments": links.related(*at, "assignments"),
        },
    )


def _assignment(links: Links, group: str, member_id: str, topic: str, index: int) -> Fields:
    at = ["consumer-groups", group]
    return links.resource(
        "ConsumerAssignment",
        [*at, "consumers", member_id, "assignments", topic, "partitions", index],
        f"consumer-group={group}/consumer={member_id}/assignment={topic}/partition={index}",
        {
            "consumer_group_id": group,
            "consumer_id": member_id,
            "topic_name": topic,
            "partition_id": index,
            "partition": links.related("topics", topic, "partitions", index),
            "lag": links.related(*at, "lags", topic, "partitions", index),
        },
    )


def _lag(links: Links, group: Group, found: Progress) -> Fields:
    member = _owner(group, found)
    return links.resource(
        "ConsumerLag",
        ["consumer-groups", group.name, "lags", found.topic, "partitions", found.partition],
        f"consumer-group={group.name}/lag={found.topic}/partition={found.partition}",
        {
            "consumer_group_id": group.name,
            "topic_name": found.topic,
            "partition_id": found.partition,
            "current_offset": found.committed,
            "log_end_offset": found.log_end,
            "lag": found.lag,
            "consumer_id": member.member_id if member else "",
            "instance_id": member.instance_id if member else None,
            "client_id": member.client_id if member else "",
        },
    )
