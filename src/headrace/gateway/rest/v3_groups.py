"""REST proxy, v3: consumer groups, their members, and their lag."""

import re
from typing import Annotated

from fastapi import Depends, Path

from headrace.client.groups.group import Group, Member, Progress
from headrace.gateway.problems import Problem
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import GROUP, NO_NUL, PartitionId, TopicName
from headrace.gateway.rest.v3_resources import Collection, Fields, Links, LinksDep, Resource, v3_router

router = v3_router("/consumer-groups")

_GROUP = "/{consumer_group_id}"
_CONSUMER = f"{_GROUP}/consumers/{{consumer_id}}"


def described(
    name: Annotated[
        str,
        Path(
            alias="consumer_group_id",
            description="The group.",
            min_length=1,
            max_length=GROUP,
            pattern=NO_NUL,
        ),
    ],
    reach: ReachDep,
) -> Group:
    return reach.groups.describe([name])[0]


Described = Annotated[Group, Depends(described)]


def member_of(
    group: Described,
    member_id: Annotated[
        str, Path(alias="consumer_id", description="The member's id.", min_length=1, max_length=1000)
    ],
) -> Member:
    """Return the member that a path names; raise a Problem (404) if the group does not have it."""
    for member in group.members:
        if member.member_id == member_id:
            return member
    raise Problem(404, f"group {group.name} has no member {member_id}")


MemberDep = Annotated[Member, Depends(member_of)]


@router.get("", summary="List groups")
def groups(links: LinksDep, reach: ReachDep) -> Collection:
    """Return all groups by name."""
    names = [each.name for each in reach.groups.list_groups()]
    found = reach.groups.describe(names) if names else []
    return links.collection("ConsumerGroup", ["consumer-groups"], (_group(links, each) for each in found))


@router.get(_GROUP, summary="Get a group")
def group(links: LinksDep, found: Described) -> Resource:
    """Return the group's state and coordinator."""
    return _group(links, found)


@router.get(f"{_GROUP}/consumers", summary="List the members of a group")
def consumers(links: LinksDep, found: Described) -> Collection:
    """Return each member with the address of its assignment."""
    at = ["consumer-groups", found.name, "consumers"]
    return links.collection(
        "Consumer", at, (_consumer(links, found.name, member) for member in found.members)
    )


@router.get(_CONSUMER, summary="Get a member")
def consumer(links: LinksDep, found: Described, member: MemberDep) -> Resource:
    """Return the member with this member id."""
    return _consumer(links, found.name, member)


@router.get(f"{_CONSUMER}/assignments", summary="List the partitions of a member")
def assignments(links: LinksDep, found: Described, member: MemberDep) -> Collection:
    """Return each partition that is assigned to the member."""
    at = ["consumer-groups", found.name, "consumers", member.member_id, "assignments"]
    resources = [
        links.resource(
            "ConsumerAssignment",
            [*at, topic.topic, "partitions", index],
            consumer_group_id=found.name,
            consumer_id=member.member_id,
            topic_name=topic.topic,
            partition_id=index,
            partition=links.related("topics", topic.topic, "partitions", index),
            lag=links.related(*at[:2], "lags", topic.topic, "partitions", index),
        )
        for topic in member.assignment
        for index in topic.partitions
    ]
    return links.collection("ConsumerAssignment", at, resources)


@router.get(f"{_GROUP}/lags", summary="List the lags of a group")
def lags(links: LinksDep, found: Described) -> Collection:
    """Return the lag of each partition that the group has committed an offset for."""
    at = ["consumer-groups", found.name, "lags"]
    return links.collection("ConsumerLag", at, (_lag(links, found, each) for each in _lagging(found)))


@router.get(
    f"{_GROUP}/lags/{{topic_name}}/partitions/{{partition_id}}", summary="Get a group's lag in a partition"
)
def lag(links: LinksDep, found: Described, topic_name: TopicName, partition_id: PartitionId) -> Resource:
    """Return the committed offset, the log end offset, and the difference."""
    for each in _lagging(found):
        if (each.topic, each.partition) == (topic_name, partition_id):
            return _lag(links, found, each)
    raise Problem(404, f"group {found.name} has committed no offset for {topic_name}-{partition_id}")


@router.get(f"{_GROUP}/lag-summary", summary="Get a group's total lag")
def lag_summary(links: LinksDep, found: Described) -> Resource:
    """Return the sum, and the partition with the largest lag."""
    known = _lagging(found)
    if not known:
        raise Problem(404, f"group {found.name} has committed no offset")
    worst = max(known, key=lambda each: each.lag or 0)
    member = _owner(found, worst)
    at = ["consumer-groups", found.name]
    related: Fields = {}
    if member is not None:
        related = {"max_lag_consumer": links.related(*at, "consumers", member.member_id)}
    return links.resource(
        "ConsumerGroupLagSummary",
        [*at, "lag-summary"],
        consumer_group_id=found.name,
        max_lag_consumer_id=member.member_id if member else "",
        max_lag_instance_id=member.instance_id if member else None,
        max_lag_client_id=member.client_id if member else "",
        max_lag_topic_name=worst.topic,
        max_lag_partition_id=worst.partition,
        max_lag=worst.lag,
        total_lag=found.total_lag,
        **related,
        max_lag_partition=links.related("topics", worst.topic, "partitions", worst.partition),
    )


def _lagging(group: Group) -> list[Progress]:
    """Return the partitions whose lag is known."""
    return [partition for partition in group.partitions if partition.lag is not None]


def _owner(group: Group, progress: Progress) -> Member | None:
    """Return the member that a partition is assigned to."""
    return next((member for member in group.members if member.member_id == progress.member_id), None)


def _group(links: Links, found: Group) -> Resource:
    return links.resource(
        "ConsumerGroup",
        ["consumer-groups", found.name],
        consumer_group_id=found.name,
        is_simple=not found.members and found.assignor is None,
        partition_assignor=found.assignor or "",
        state=re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found.state).upper(),
        type=found.type.upper(),
        is_mixed_consumer_group=False,
        coordinator=links.related("brokers", found.coordinator.id),
    )


def _consumer(links: Links, group_name: str, found: Member) -> Resource:
    return links.resource(
        "Consumer",
        ["consumer-groups", group_name, "consumers", found.member_id],
        consumer_group_id=group_name,
        consumer_id=found.member_id,
        instance_id=found.instance_id,
        client_id=found.client_id,
    )


def _lag(links: Links, found: Group, progress: Progress) -> Resource:
    member = _owner(found, progress)
    return links.resource(
        "ConsumerLag",
        ["consumer-groups", found.name, "lags", progress.topic, "partitions", progress.partition],
        consumer_group_id=found.name,
        topic_name=progress.topic,
        partition_id=progress.partition,
        current_offset=progress.committed,
        log_end_offset=progress.log_end,
        lag=progress.lag,
        consumer_id=member.member_id if member else "",
        instance_id=member.instance_id if member else None,
        client_id=member.client_id if member else "",
    )
