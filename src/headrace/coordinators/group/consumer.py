"""A consumer group (KIP-848): the coordinator computes the assignment, and members reconcile one by one.

    The group epoch is incremented when a subscription changes, a member leaves, or a topic changes.
    For each group epoch there is a target assignment.
    Every member has a member epoch, which reaches the target's when the member has reconciled:

    STABLE ──new target──▶ UNREVOKED ──has revoked its surplus partitions──▶ UNRELEASED ──▶ STABLE
                           keeps its old epoch                waits until others revoke its new partitions

A partition has one owner at most. It is assigned only when it has no owner, and its owner keeps it until
the owner confirms the revocation in a heartbeat. All of this state is durable.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import ClassVar, Final, NamedTuple

from headrace.coordinators.group.assignors import Assignment
from headrace.coordinators.group.errors import IllegalGeneration, StaleMemberEpoch, UnsupportedByGroup
from headrace.coordinators.group.kinds import check_member
from headrace.coordinators.group.offsets import Commit
from headrace.coordinators.group.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupRecord,
    TopicPartitions,
)
from headrace.protocol.message import Message

LEAVE_GROUP_MEMBER_EPOCH = -1  # in a request: the member leaves
LEAVE_GROUP_STATIC_MEMBER_EPOCH = -2  # a static member leaves temporarily and keeps its partitions
_COMMIT_WITH_EPOCH = 9  # the first version of OffsetCommit with a member epoch


class MemberState(IntEnum):
    """The progress of a member's reconciliation. The numbers are Kafka's."""

    STABLE = 0
    UNREVOKED = 1
    UNRELEASED = 2
    UNKNOWN = 127

    @classmethod
    def _missing_(cls, _value: object) -> "MemberState":
        """Return UNKNOWN for a state that a later version has written."""
        return cls.UNKNOWN


TRANSITIONS: Final = {
    MemberState.STABLE: {MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED},
    MemberState.UNREVOKED: {MemberState.UNREVOKED, MemberState.UNRELEASED, MemberState.STABLE},
    MemberState.UNRELEASED: {MemberState.UNRELEASED, MemberState.UNREVOKED, MemberState.STABLE},
    MemberState.UNKNOWN: {MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED},
}


class ClassicMetadata(NamedTuple):
    """What a consumer group knows in addition of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member. It is immutable, so that the states before and after a decision can be compared."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    expression: str | None = None
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Assignment = field(default_factory=dict)
    revoking: Assignment = field(default_factory=dict)  # owned until the member confirms the revocation

    def is_reconciled(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def owns(self) -> Iterable[tuple[bytes, int]]:
        """Yield every partition that the member owns, including those it has to revoke."""
        for assignment in (self.assigned, self.revoking):
            for topic_id, partitions in assignment.items():
                for partition in partitions:
                    yield topic_id, partition


@dataclass(slots=True)
class ConsumerGroup:
    """A consumer group. Its state is durable and changes by records; `consumer_protocol` decides them."""

    type_name: ClassVar[str] = "consumer"
    protocol_type: ClassVar[str | None] = "consumer"
    metadata_key: ClassVar[type[Message]] = ConsumerGroupMetadataKey
    record_keys: ClassVar[Collection[type[Message]]] = (
        ConsumerGroupMetadataKey,
        ConsumerGroupMemberMetadataKey,
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupRegularExpressionKey,
    )

    group_id: str
    epoch: int = 0
    metadata_hash: int = 0
    target_epoch: int = 0
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  # member ids of static members by instance id
    target: dict[str, Assignment] = field(default_factory=dict)
    resolved: dict[str, frozenset[str]] = field(default_factory=dict)  # topics by regular expression
    owners: dict[tuple[bytes, int], str] = field(default_factory=dict)
    changed_ms: int = -(2**62)  # when the epoch last changed; not durable
    seen_topics: int = -1  # the `Topics.version` that the hash was last compared with; not durable

    def copy(self) -> "ConsumerGroup":
        return replace(
            self,
            members=dict(self.members),
            instances=dict(self.instances),
            target=dict(self.target),
            resolved=dict(self.resolved),
            owners=dict(self.owners),
        )

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_unused(self) -> bool:
        return not self.members

    @property
    def state_name(self) -> str:
        if self.is_empty:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled(self.target_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    def member(self, member_id: str, instance_id: str | None = None) -> ConsumerMember:
        """Return the member; raise if it is unknown or its instance id belongs to another member."""
        check_member(self, member_id, instance_id)
        return self.members[member_id]

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topic names that the member subscribes to; topics need not exist."""
        if member.expression is None:
            return member.topics
        return member.topics | self.resolved.get(member.expression, frozenset())

    def subscribed(self) -> set[str]:
        return {topic for member in self.members.values() for topic in self.topics_of(member)}

    def is_subscribed(self, topic: str) -> bool:
        return any(topic in self.topics_of(member) for member in self.members.values())

    def expressions(self) -> set[str]:
        return {member.expression for member in self.members.values() if member.expression is not None}

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members request; None if none is requested, or at a tie."""
        votes = Counter(member.assignor for member in self.members.values() if member.assignor is not None)
        most = [name for name, count in votes.items() if count == max(votes.values())]
        return most[0] if len(most) == 1 else None

    def classic_members(self) -> list[ConsumerMember]:
        return [member for member in self.members.values() if member.classic is not None]

    def classic_epoch(self) -> int:
        """Return the epoch that classic members have to reach.

        It is the target's epoch: the next heartbeat of a consumer member computes the next target, and
        before that a classic member need not rejoin. Without an active consumer member it is the group
        epoch, and the next classic member that rejoins computes the target.
        """
        if self.epoch == self.target_epoch:
            return self.epoch
        has_active_consumer = any(
            member.classic is None and member.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH
            for member in self.members.values()
        )
        return self.target_epoch if has_active_consumer else self.epoch

    def supports_classic(self, protocols: Sequence[tuple[str, bytes]]) -> bool:
        """Return whether every classic member supports one of `protocols`."""
        classic = self.classic_members()
        known = Counter(name for member in classic if member.classic for name, _ in member.classic.protocols)
        return any(known[name] == len(classic) for name, _ in protocols)

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Return whether another member still owns a partition of this member's target."""
        target = self.target.get(member.member_id, {})
        return any(
            (topic_id, partition) in self.owners
            for topic_id, partitions in target.items()
            for partition in partitions - member.assigned.get(topic_id, frozenset())
        )

    def check_commit(self, commit: Commit) -> None:
        if commit.generation < 0 and self.is_empty:
            return
        member = self.member(commit.member_id)
        if member.classic is None and commit.version < _COMMIT_WITH_EPOCH:
            raise UnsupportedByGroup(
                f"OffsetCommit v{commit.version} has no member epoch: consumer group {self.group_id!r} "
                f"needs v{_COMMIT_WITH_EPOCH} or later"
            )
        self._check_epoch(member, commit.generation)

    def check_transactional_commit(self, commit: Commit) -> None:
        names_member = bool(commit.member_id) or commit.instance_id is not None
        if commit.generation >= 0 or (names_member and not self.is_empty):
            self._check_epoch(self.member(commit.member_id), commit.generation)

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        if member_id is not None or epoch >= 0:
            self._check_epoch(self.member(member_id or ""), epoch)

    def _check_epoch(self, member: ConsumerMember, epoch: int) -> None:
        if epoch != member.epoch:
            kind = StaleMemberEpoch if member.classic is None else IllegalGeneration
            raise kind(f"member {member.member_id} is at epoch {member.epoch}, the request names {epoch}")

    def check_delete_offsets(self) -> None:
        """Accept every request: the subscriptions of all members are known."""

    def offset_expiration_base_ms(self, committed_ms: int) -> int | None:
        return committed_ms

    def tombstones(self) -> list[GroupRecord]:
        keys: list[Message] = [
            *(
                ConsumerGroupCurrentMemberAssignmentKey(group=self.group_id, member_id=m)
                for m in self.members
            ),
            *(ConsumerGroupTargetAssignmentMemberKey(group=self.group_id, member_id=m) for m in self.members),
            ConsumerGroupTargetAssignmentMetadataKey(group=self.group_id),
            *(ConsumerGroupMemberMetadataKey(group=self.group_id, member_id=m) for m in self.members),
            *(
                ConsumerGroupRegularExpressionKey(group=self.group_id, regular_expression=expression)
                for expression in self.resolved
            ),
            ConsumerGroupMetadataKey(group=self.group_id),
        ]
        return [GroupRecord(key, None) for key in keys]

    def apply(self, key: Message, value: Message | None) -> None:
        match key:
            case ConsumerGroupMetadataKey():
                assert isinstance(value, ConsumerGroupMetadataValue), "a group's tombstone removes the group"
                self.epoch, self.metadata_hash = value.epoch, value.metadata_hash
            case ConsumerGroupTargetAssignmentMetadataKey():
                known = isinstance(value, ConsumerGroupTargetAssignmentMetadataValue)
                self.target_epoch = value.assignment_epoch if known else 0  # type: ignore[union-attr]
            case ConsumerGroupMemberMetadataKey():
                self._apply_member(key.member_id, value)
            case ConsumerGroupTargetAssignmentMemberKey():
                if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
                    self.target[key.member_id] = _assignment(value.topic_partitions)
                else:
                    self.target.pop(key.member_id, None)
            case ConsumerGroupCurrentMemberAssignmentKey():
                self._apply_current(key.member_id, value)
            case ConsumerGroupRegularExpressionKey():
                if isinstance(value, ConsumerGroupRegularExpressionValue):
                    self.resolved[key.regular_expression] = frozenset(value.topics)
                else:
                    self.resolved.pop(key.regular_expression, None)

    def _apply_member(self, member_id: str, value: Message | None) -> None:
        old = self.members.get(member_id, ConsumerMember(member_id=member_id))
        if not isinstance(value, ConsumerGroupMemberMetadataValue):
            self._disown(old)
            self.members.pop(member_id, None)
            if old.instance_id is not None and self.instances.get(old.instance_id) == member_id:
                del self.instances[old.instance_id]
            return
        classic = value.classic_member_metadata
        self.members[member_id] = replace(
            old,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            topics=frozenset(value.subscribed_topic_names),
            expression=value.subscribed_topic_regex or None,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            assignor=value.server_assignor,
            classic=None
            if classic is None
            else ClassicMetadata(
                classic.session_timeout_ms,
                tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
            ),
        )
        if value.instance_id is not None:
            self.instances[value.instance_id] = member_id

    def _apply_current(self, member_id: str, value: Message | None) -> None:
        old = self.members.get(member_id)
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            old = old or ConsumerMember(member_id=member_id)
            new = replace(
                old,
                epoch=value.member_epoch,
                previous_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=_assignment(value.assigned_partitions),
                revoking=_assignment(value.partitions_pending_revocation),
            )
        elif old is not None:
            new = replace(old, epoch=-1, previous_epoch=-1, assigned={}, revoking={})
        else:
            return
        self._disown(old)
        self.members[member_id] = new
        for owned in new.owns():
            self.owners[owned] = member_id

    def _disown(self, member: ConsumerMember) -> None:
        for owned in member.owns():
            if self.owners.get(owned) == member.member_id:
                del self.owners[owned]


def initial_group_records(group_id: str) -> list[GroupRecord]:
    """Return the records of a new group, at epoch 1: a member epoch of 0 in a request means joining."""
    return [epoch_record(group_id, 1, 0), target_epoch_record(group_id, 1)]


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> GroupRecord:
    value = ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return GroupRecord(ConsumerGroupMetadataKey(group=group_id), value)


def target_epoch_record(group_id: str, epoch: int) -> GroupRecord:
    value = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch)
    return GroupRecord(ConsumerGroupTargetAssignmentMetadataKey(group=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> GroupRecord:
    value = ConsumerGroupTargetAssignmentMemberValue(topic_partitions=_partitions(assignment))
    return GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), value)


def member_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.topics),
        subscribed_topic_regex=member.expression,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.assignor,
        classic_member_metadata=classic,
    )
    return GroupRecord(ConsumerGroupMemberMetadataKey(group=group_id, member_id=member.member_id), value)


def current_record(group_id: str, member: ConsumerMember) -> GroupRecord:
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.epoch,
        previous_member_epoch=member.previous_epoch,
        state=int(member.state),
        assigned_partitions=_partitions(member.assigned),
        partitions_pending_revocation=_partitions(member.revoking),
    )
    key = ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member.member_id)
    return GroupRecord(key, value)


def expression_record(
    group_id: str, expression: str, topics: frozenset[str] | None, version: int, now_ms: int
) -> GroupRecord:
    """Return the record of the topics that match `expression`; a tombstone if `topics` is None."""
    key = ConsumerGroupRegularExpressionKey(group=group_id, regular_expression=expression)
    if topics is None:
        return GroupRecord(key, None)
    value = ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=now_ms)
    return GroupRecord(key, value)


def member_tombstones(group_id: str, member_id: str) -> list[GroupRecord]:
    """Return the tombstones of a member's current assignment, target assignment and metadata."""
    return [
        GroupRecord(ConsumerGroupCurrentMemberAssignmentKey(group=group_id, member_id=member_id), None),
        GroupRecord(ConsumerGroupTargetAssignmentMemberKey(group=group_id, member_id=member_id), None),
        GroupRecord(ConsumerGroupMemberMetadataKey(group=group_id, member_id=member_id), None),
    ]


def _assignment(partitions: Sequence[TopicPartitions]) -> Assignment:
    return {topic.topic_id: frozenset(topic.partitions) for topic in partitions}


def _partitions(assignment: Mapping[bytes, frozenset[int]]) -> list[TopicPartitions]:
    return [
        TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(assignment.items())
    ]
