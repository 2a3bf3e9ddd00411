"""REST proxy, v3: consumer groups, their members, and their lag."""

import re
from typing import Annotated

from fastapi import Depends, Path

from headrace.client.groups.group import Group, Member, Progress
from headrace.gateway.problems import Problem
from headrace.gateway.reach import ReachDep
from headrace.gateway.rest.bodies import GROUP, NO_NUL, PartitionId, TopicName
from headrace.gateway.rest.v3_resources import Fields, Related, V3Router

router = V3Router()

GroupId = Annotated[
    str,
    Path(alias="consumer_group_id", description="The group.", min_length=1, max_length=GROUP, pattern=NO_NUL),
]
ConsumerId = Annotated[
    str, Path(alias="consumer_id", description="The member's id.", min_length=1, max_length=1000)
]


def described(name: GroupId, reach: ReachDep) -> Group:
    return reach.groups.describe([name])[0]


Described = Annotated[Group, Depends(described)]


def member_of(group: Described, member_id: ConsumerId) -> Member:
    """Return the member that a path names; raise a Problem (404) if the group does not have it."""
    for member in group.members:
        if member.member_id == member_id:
            return member
    raise Problem(404, f"group {group.name} has no member {member_id}")


MemberDep = Annotated[Member, Depends(member_of)]


@router.lists("ConsumerGroup")
def groups(reach: ReachDep) -> list[Fields]:
    """Return all groups by name."""
    names = [summary.name for summary in reach.groups.list_groups()]
    return [group(found) for found in reach.groups.describe(names)] if names else []


@router.shows("ConsumerGroup")
def group(found: Described) -> Fields:
    """Return the group's state and coordinator."""
    return {
        "consumer_group_id": found.name,
        "is_simple": not found.members and found.assignor is None,
        "partition_assignor": found.assignor or "",
        "state": re.sub(r"(?<=[a-z])(?=[A-Z])", "_", found.state).upper(),
        "type": found.type.upper(),
        "is_mixed_consumer_group": False,
        "coordinator": Related(("brokers", found.coordinator.id)),
    }


@router.lists("Consumer")
def consumers(found: Described) -> list[Fields]:
    """Return each member with the address of its assignment."""
    return [consumer(found, member) for member in found.members]


@router.shows("Consumer")
def consumer(found: Described, member: MemberDep) -> Fields:
    """Return the member with this member id."""
    return {"consumer_group_id": found.name, **_named(member)}


@router.lists(
    "ConsumerAssignment", "/consumer-groups/{consumer_group_id}/consumers/{consumer_id}/assignments"
)
def assignments(found: Described, member: MemberDep) -> list[Fields]:
    """Return each partition that is assigned to the member."""
    return [
        {
            "consumer_group_id": found.name,
            "consumer_id": member.member_id,
            "topic_name": topic.topic,
            "partition_id": index,
            "partition": Related(("topics", topic.topic, "partitions", index)),
            "lag": Related(("consumer-groups", found.name, "lags", topic.topic, "partitions", index)),
        }
        for topic in member.assignment
        for index in topic.partitions
    ]


@router.lists("ConsumerLag", "/consumer-groups/{consumer_group_id}/lags")
def lags(found: Described) -> list[Fields]:
    """Return the lag of each partition that the group has committed an offset for."""
    return [
        {
            "consumer_group_id": found.name,
            "topic_name": progress.topic,
            "partition_id": progress.partition,
            "current_offset": progress.committed,
            "log_end_offset": progress.log_end,
            "lag": progress.lag,
            **_named(_owner(found, progress)),
        }
        for progress in found.partitions
        if progress.lag is not None
    ]


@router.shows("ConsumerLag")
def lag(found: Described, topic_name: TopicName, partition_id: PartitionId) -> Fields:
    """Return the committed offset, the log end offset, and the difference."""
    for fields in lags(found):
        if (fields["topic_name"], fields["partition_id"]) == (topic_name, partition_id):
            return fields
    raise Problem(404, f"group {found.name} has committed no offset for {topic_name}-{partition_id}")


@router.shows("ConsumerGroupLagSummary")
def lag_summary(found: Described) -> Fields:
    """Return the sum, and the partition with the largest lag."""
    known = [partition for partition in found.partitions if partition.lag is not None]
    if not known:
        raise Problem(404, f"group {found.name} has committed no offset")
    worst = max(known, key=lambda partition: partition.lag or 0)
    member = _owner(found, worst)
    fields: Fields = {
        "consumer_group_id": found.name,
        **{f"max_lag_{name}": value for name, value in _named(member).items()},
        "max_lag_topic_name": worst.topic,
        "max_lag_partition_id": worst.partition,
        "max_lag": worst.lag,
        "total_lag": found.total_lag,
        "max_lag_partition": Related(("topics", worst.topic, "partitions", worst.partition)),
    }
    if member is not None:
        path = ("consumer-groups", found.name, "consumers", member.member_id)
        fields["max_lag_consumer"] = Related(path)
    return fields


def _owner(group: Group, progress: Progress) -> Member | None:
    return next((member for member in group.members if member.member_id == progress.member_id), None)


def _named(member: Member | None) -> Fields:
    return {
        "consumer_id": member.member_id if member else "",
        "instance_id": member.instance_id if member else None,
        "client_id": member.client_id if member else "",
    }
