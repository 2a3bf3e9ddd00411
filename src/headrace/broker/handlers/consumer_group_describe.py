"""ConsumerGroupDescribe (key 69), v0-v1.

Behaviour: returns consumer groups with their epochs, and members with their current and target assignments.
Versions:  v1 member type: classic or consumer protocol.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import bounded_repeats
from headrace.broker.requests.requirements import on_groups, on_topics
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_fields
from headrace.coordinators.group.assignors import Assignment as Partitions
from headrace.coordinators.group.consumer import ConsumerGroup, ConsumerMember
from headrace.coordinators.group.errors import GroupIdNotFound, InvalidGroupId
from headrace.coordinators.group.reconcile import NOTHING
from headrace.protocol.schema import consumer_group_describe as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import ALLOW_ALL, Operation, ResourceType

_CLASSIC, _CONSUMER = 0, 1
_DESCRIBE: Final = on_groups(Operation.DESCRIBE)
_DESCRIBE_TOPIC: Final = on_topics(Operation.DESCRIBE)


@handles(ApiKey.CONSUMER_GROUP_DESCRIBE, range(2), requires=(_DESCRIBE, _DESCRIBE_TOPIC))
def consumer_group_describe(
    request: api.ConsumerGroupDescribeRequest, context: Context
) -> Steps[api.ConsumerGroupDescribeResponse]:
    describe = partial(_describe, requested=request.include_authorized_operations, context=context)
    group_ids = yield from bounded_repeats(request.group_ids)
    groups = yield from each(describe, group_ids, step=1)  # the hash of a long group id takes 3 ms
    return api.ConsumerGroupDescribeResponse(groups=groups)


def _describe(group_id: str, requested: bool, context: Context) -> api.DescribedGroup:
    try:
        context.require(_DESCRIBE, group_id)
        if not group_id:
            raise InvalidGroupId("the group id is empty")
        group = context.broker.groups.shard(group_id).machine.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"consumer group {group_id!r} does not exist")
        for name in _topics(group, context):
            context.require(_DESCRIBE_TOPIC, name)
    except FAILURES as error:
        return api.DescribedGroup(
            **error_fields(error),
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )
    return api.DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.preferred_assignor() or context.broker.groups.limits.consumer_assignors[0],
        members=[_member(group, member, context) for member in group.members.values()],
        authorized_operations=context.authorized_operations(
            ResourceType.GROUP, group_id, requested=requested
        ),
    )


def _topics(group: ConsumerGroup, context: Context) -> Iterator[str]:
    """Yield the names of the topics in the assignments of a group, if they matter for authorization.

    As in Kafka, a group with one topic that the principal may not see is refused.
    """
    if context.authorizer is ALLOW_ALL:
        return
    names = context.broker.image.topic_names
    ids = {topic_id for target in group.target.values() for topic_id in target}
    ids.update(topic_id for member in group.members.values() for topic_id in _owned(member))
    yield from (names[topic_id] for topic_id in ids if topic_id in names)


def _member(group: ConsumerGroup, member: ConsumerMember, context: Context) -> api.Member:
    return api.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.expression or "",
        assignment=_assignment(_owned(member), context),
        target_assignment=_assignment(group.target.get(member.member_id, {}), context),
        member_type=_CONSUMER if member.classic is None else _CLASSIC,
    )


def _owned(member: ConsumerMember) -> Partitions:
    """Return the partitions that a member owns, including those it has not revoked yet."""
    return {
        topic_id: member.assigned.get(topic_id, NOTHING) | member.revoking.get(topic_id, NOTHING)
        for topic_id in {**member.assigned, **member.revoking}
    }


def _assignment(partitions: Partitions, context: Context) -> api.Assignment:
    names = context.broker.image.topic_names
    return api.Assignment(
        topic_partitions=[
            api.TopicPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=sorted(numbers))
            for topic_id, numbers in partitions.items()
            if topic_id in names
        ]
    )
