"""Upgrade of a classic group with members to a consumer group, and downgrade back: the records of both."""

from collections.abc import Sequence

from headrace.coordinators.group import consumer
from headrace.coordinators.group.assignors import Assignment
from headrace.coordinators.group.classic import CONSUMER, ClassicGroup, ClassicMember, ClassicState
from headrace.coordinators.group.errors import GroupIdNotFound, InconsistentProtocol
from headrace.coordinators.group.records import GroupRecord
from headrace.coordinators.topics import Topics
from headrace.protocol import consumer_protocol
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition


def upgrade(group: ClassicGroup, topics: Topics) -> list[GroupRecord]:
    """Return the records that upgrade a classic group; every member keeps its assignment.

    The group epoch, the target's epoch and all member epochs are the generation, at least 1. Members that
    were joining or syncing rejoin first and reconcile then. If a partition is unassigned, the hash of the
    subscribed topics is 0, which forces a new target.
    """
    group_id, epoch = group.group_id, max(group.generation, 1)
    members = [_upgraded(group, member, topics, epoch) for member in group.members.values()]
    subscribed = {name for member in members for name in member.topics if name in topics.by_name}
    partitions = {
        (topics.by_name[name].topic_id, number)
        for name in subscribed
        for number in range(topics.by_name[name].partitions)
    }
    assigned = {owned for member in members for owned in member.owns()}
    return [
        *(consumer.member_record(group_id, member) for member in members),
        consumer.epoch_record(group_id, epoch, topics.digest(subscribed) if partitions <= assigned else 0),
        *(consumer.target_record(group_id, member.member_id, member.assigned) for member in members),
        consumer.target_epoch_record(group_id, epoch),
        *(consumer.current_record(group_id, member) for member in members),
    ]


def _upgraded(
    group: ClassicGroup, member: ClassicMember, topics: Topics, epoch: int
) -> consumer.ConsumerMember:
    try:
        subscription = read_subscription(member.protocols)
        assigned = _read_assigned(member.assignment, topics)
    except (ProtocolError, InconsistentProtocol) as error:
        raise GroupIdNotFound(
            f"group {group.group_id!r} is a classic group and cannot be upgraded: {error}"
        ) from error
    return consumer.ConsumerMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=subscription.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topics=frozenset(subscription.topics),
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        classic=consumer.ClassicMetadata(member.session_timeout_ms, tuple(member.protocols)),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
    )


def _read_assigned(assignment: bytes, topics: Topics) -> Assignment:
    if not assignment:
        return {}
    message = consumer_protocol.decode_assignment(assignment)
    if message.user_data:
        raise InconsistentProtocol("the assignment has user data, which the upgrade would lose")
    return {
        topics.by_name[assigned.topic].topic_id: frozenset(assigned.partitions)
        for assigned in message.assigned_partitions
        if assigned.topic in topics.by_name and assigned.partitions
    }


def downgrade(group: consumer.ConsumerGroup, topics: Topics, now_ms: int) -> list[GroupRecord]:
    """Return the records that downgrade a consumer group whose members all use the classic protocol.

    The classic group is stable, its generation is the group epoch, and its assignment is the target.
    """
    classic = ClassicGroup(group.group_id, ClassicState.STABLE, group.epoch)
    for member in group.members.values():
        assert member.classic is not None, f"{member.member_id} does not use the classic protocol"
        classic.add(
            ClassicMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.classic.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=member.classic.protocols,
            ),
            CONSUMER,
        )
    classic.protocol_name = classic.choose_protocol()
    assignments = {
        member_id: write_assignment(
            group.target.get(member_id, {}), topics, like=member.metadata(classic.protocol_name)
        )
        for member_id, member in classic.members.items()
    }
    return [*group.tombstones(), classic.record(assignments, now_ms)]


def read_subscription(
    protocols: Sequence[tuple[str, bytes]],
) -> consumer_protocol.ConsumerProtocolSubscription:
    """Return the member's subscription from its first protocol; all its protocols carry the same one."""
    try:
        return consumer_protocol.decode_subscription(protocols[0][1])
    except ProtocolError as error:
        raise InconsistentProtocol(f"the member's subscription cannot be decoded: {error}") from error


def write_assignment(assigned: Assignment, topics: Topics, *, like: bytes) -> bytes:
    """Return the encoded assignment, in the version of the subscription `like`."""
    newest = consumer_protocol.ConsumerProtocolAssignment.__codec__.versions[-1]
    version = max(0, min(int.from_bytes(like[:2], "big", signed=True), newest))
    partitions = [
        TopicPartition(topic=topics.names[topic_id], partitions=sorted(numbers))
        for topic_id, numbers in sorted(assigned.items())
        if topic_id in topics.names
    ]
    message = consumer_protocol.ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=None)
    return consumer_protocol.encode_assignment(message, version)
