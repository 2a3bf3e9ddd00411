"""The group coordinator: the groups and offsets of one partition of `__consumer_offsets`.

A request (or a deadline, `expire`) leads to a decision: the records to append and the replies to send. It
changes no durable state. `apply` changes durable state as one record says. The same `apply` replays the
partition after a failover, so a replay ends in the same state as the original run.

    decision = coordinator.join(join, waiter, now_ms)     # or, for deadlines: coordinator.expire(now_ms)
    ... append decision.records ...
    for record in decision.records: coordinator.apply(record)
    if decision.on_applied: decision.on_applied()
    ... once the records are committed, send decision.replies ...

Waiting requests and deadlines are not durable: a decision changes them immediately.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from headrace.coordinators.decision import Producer, Waiter
from headrace.coordinators.errors import NotCoordinator
from headrace.coordinators.group import consumer, errors
from headrace.coordinators.group.classic import ClassicGroup
from headrace.coordinators.group.classic_members import ConsumerGroupKind
from headrace.coordinators.group.classic_protocol import ClassicGroupKind
from headrace.coordinators.group.consumer_protocol import ConsumerProtocolMachine, Heartbeat, HeartbeatResult
from headrace.coordinators.group.decision import Decision, Join, Leaving, Sync
from headrace.coordinators.group.kinds import Group, GroupContext, GroupKind
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.coordinators.group.migration import upgrade
from headrace.coordinators.group.offsets import (
    Commit,
    Committed,
    Offsets,
    PendingOffsets,
    offset_record,
    offset_tombstone,
)
from headrace.coordinators.group.records import (
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_record,
    encode_record,
    is_offset_commit,
)
from headrace.coordinators.machine import NO_PRODUCER, CoordinatorMachine
from headrace.coordinators.topics import Topics

_GROUP_ID_NOT_FOUND_SINCE = 9  # the first OffsetCommit version that may return GROUP_ID_NOT_FOUND
_TXN_EPOCH_ERRORS_SINCE = 6  # the first TxnOffsetCommit version that may return that, and STALE_MEMBER_EPOCH


class GroupCoordinator(CoordinatorMachine[GroupRecord]):
    """Groups, their committed offsets and their deadlines.

    `new_id` and `timeouts` are those of `GroupContext`.
    """

    follows_topics = True

    def __init__(
        self,
        limits: GroupLimits,
        new_id: Callable[[], str],
        timeouts: Mapping[str, ConsumerTimeouts] = MappingProxyType({}),
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.pending_offsets = PendingOffsets()
        self._context = context = GroupContext(limits, new_id, timeouts)
        self.deadlines = context.deadlines
        self._consumer = ConsumerProtocolMachine(context)
        self._classic_kind = ClassicGroupKind(context)
        self._consumer_kind = ConsumerGroupKind(context, self._consumer, self._classic_kind, self.groups)
        kinds: Sequence[GroupKind[Any]] = (self._classic_kind, self._consumer_kind)
        self._kinds = {kind.group_type.type_name: kind for kind in kinds}
        self._types_by_key = {key: kind.group_type for kind in kinds for key in kind.group_type.record_keys}

    def use(self, limits: GroupLimits) -> None:
        """Replace the limits; they apply from the next request on."""
        self._context.limits = limits

    def topics_changed(self, topics: Topics) -> None:
        self.topics = self._context.topics = topics

    def join(self, join: Join, waiter: Waiter, now_ms: int) -> Decision:
        """JoinGroup: the reply is sent when the rebalance completes the join phase."""
        _check_group_id(join.group_id)
        limits = self._context.limits
        if not limits.min_session_timeout_ms <= join.session_timeout_ms <= limits.max_session_timeout_ms:
            raise errors.InvalidSessionTimeout(
                f"session timeout {join.session_timeout_ms} ms is not between "
                f"{limits.min_session_timeout_ms} and {limits.max_session_timeout_ms} ms"
            )
        decision = Decision(now_ms)
        group = self.groups.get(join.group_id)
        if group is not None and group.is_empty and not isinstance(group, ClassicGroup):
            if join.member_id:
                raise errors.UnknownMember(f"group {join.group_id!r} has no member {join.member_id!r}")
            decision.records.extend(group.tombstones())
            group = None
        if group is None:
            if join.member_id:
                raise errors.UnknownMember(f"group {join.group_id!r} does not exist")
            if not join.protocol_type or not join.protocols:
                raise errors.InconsistentProtocol(
                    f"the first member of group {join.group_id!r} names no protocol type or no protocols"
                )
            group = self.groups[join.group_id] = ClassicGroup(join.group_id)
        self._kinds[group.type_name].join(group, join, waiter, decision)
        return decision

    def sync(self, sync: Sync, waiter: Waiter, now_ms: int) -> Decision:
        """SyncGroup: the reply is sent when the leader's assignment is committed."""
        _check_group_id(sync.group_id)
        decision = Decision(now_ms)
        group = self._group(sync.group_id, errors.UnknownMember)
        self._kinds[group.type_name].sync(group, sync, waiter, decision)
        return decision

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Heartbeat: raise RebalanceInProgress if the member has to rejoin. No record is written."""
        _check_group_id(group_id)
        group = self._group(group_id, errors.UnknownMember)
        self._kinds[group.type_name].heartbeat(group, member_id, instance_id, generation, now_ms)

    def leave(self, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Decision:
        """LeaveGroup: the answer has one error or None for each member."""
        _check_group_id(group_id)
        decision = Decision(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            decision.answer = [errors.UnknownMember(f"group {group_id!r} does not exist") for _ in leaving]
        else:
            decision.answer = self._kinds[group.type_name].leave(group, leaving, decision)
        return decision

    def consumer_heartbeat(self, beat: Heartbeat, now_ms: int) -> Decision:
        """ConsumerGroupHeartbeat: join, reconcile or leave; the answer is a `HeartbeatResult`."""
        self._consumer.check(beat)
        decision = Decision(now_ms)
        group = self.groups.get(beat.group_id)
        if beat.epoch == 0 and (group is None or isinstance(group, ClassicGroup)):
            decision.answer = self._begin_consumer_group(group, beat, decision)
        elif not isinstance(group, consumer.ConsumerGroup):
            raise errors.GroupIdNotFound(f"consumer group {beat.group_id!r} does not exist")
        elif beat.epoch == consumer.LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            member = group.member(beat.member_id, beat.instance_id)
            self._consumer.leave_as_static_member(group, member, decision)
            decision.answer = HeartbeatResult(member.member_id, beat.epoch, 0)
        elif beat.epoch == consumer.LEAVE_GROUP_MEMBER_EPOCH:
            member = group.member(beat.member_id, beat.instance_id)
            self._consumer_kind.fence(group, member.member_id, decision)
            decision.answer = HeartbeatResult(member.member_id, beat.epoch, 0)
        else:
            decision.answer = self._consumer.heartbeat(group, beat, decision)
        return decision

    def _begin_consumer_group(
        self, classic: ClassicGroup | None, beat: Heartbeat, decision: Decision
    ) -> HeartbeatResult:
        """Create a consumer group for its first member, or upgrade the classic group of that name."""
        group, limits = consumer.ConsumerGroup(beat.group_id), self._context.limits
        if classic is None or not classic.members:
            beginning = consumer.initial_group_records(beat.group_id)
        elif (
            limits.may_upgrade
            and classic.uses_consumer_protocol
            and len(classic.members) <= limits.consumer_max_size
        ):
            beginning = upgrade(classic, self.topics)
        else:
            raise errors.GroupIdNotFound(
                f"group {beat.group_id!r} is a classic group with members and cannot be upgraded "
                "(group.consumer.migration.policy, protocol type or group.consumer.max.size)"
            )
        if classic is not None:
            decision.records.extend(classic.tombstones())
        for record in beginning:
            decision.records.append(record)
            group.apply(record.key, record.value)
        answer = self._consumer.heartbeat(group, beat, decision)
        if classic is not None:
            upgraded = errors.RebalanceInProgress(
                f"group {beat.group_id!r} was upgraded to a consumer group: rejoin"
            )
            self._classic_kind.stop(classic, upgraded, decision)
            self._consumer.start(group, decision.now_ms)
        return answer

    def commit(self, commit: Commit, now_ms: int) -> Decision:
        """OffsetCommit: commit all offsets, or raise and commit none."""
        group = self.groups.get(commit.group_id)
        if group is None:
            if commit.generation >= 0:
                kind = (
                    errors.GroupIdNotFound
                    if commit.version >= _GROUP_ID_NOT_FOUND_SINCE
                    else errors.IllegalGeneration
                )
                raise kind(f"group {commit.group_id!r} does not exist")
        else:
            group.check_commit(commit)
            self._kinds[group.type_name].committed(group, commit.member_id, now_ms)
        return Decision(now_ms, records=_offset_records(commit))

    def commit_in_transaction(self, commit: Commit, producer: Producer, now_ms: int) -> Decision:
        """TxnOffsetCommit: the offsets take effect when the producer's transaction is committed."""
        _check_group_id(commit.group_id)
        try:
            if commit.group_id in self.groups or commit.generation >= 0:
                self._group(commit.group_id).check_transactional_commit(commit)
        except (errors.GroupIdNotFound, errors.StaleMemberEpoch) as error:
            if commit.version < _TXN_EPOCH_ERRORS_SINCE:
                raise errors.IllegalGeneration(str(error)) from error
            raise
        return Decision(now_ms, records=_offset_records(commit), producer=producer)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise unless the member may fetch the group's offsets; a request without a member always may."""
        group = self.groups.get(group_id)
        if group is not None:
            group.check_fetch(member_id, epoch)

    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]], now_ms: int) -> Decision:
        """OffsetDelete: the answer is the set of topics that the group subscribes to and therefore keeps."""
        _check_group_id(group_id)
        group = self._group(group_id)
        group.check_delete_offsets()
        decision = Decision(now_ms)
        decision.answer = {topic for topic, _ in partitions if group.is_subscribed(topic)}
        decision.records = [
            offset_tombstone(group_id, topic, partition)
            for topic, partition in partitions
            if topic not in decision.answer and self.offsets.get(group_id, topic, partition) is not None
        ]
        return decision

    def delete_group(self, group_id: str, now_ms: int) -> Decision:
        """DeleteGroups: delete an empty group and its offsets."""
        group = self._group(group_id)
        if not group.is_empty:
            raise errors.GroupNotEmpty(f"group {group_id!r} has {len(group.members)} members")
        offsets = [*self.offsets.tombstones(group_id), *self.pending_offsets.tombstones(group_id)]
        return Decision(now_ms, records=[*offsets, *group.tombstones()])

    def _group(self, group_id: str, refusal: type[errors.GroupError] = errors.GroupIdNotFound) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise refusal(f"group {group_id!r} does not exist")
        return group

    def topic_deleted(self, name: str, now_ms: int) -> Decision:
        """Delete all offsets of a deleted topic, so that a new topic of that name has none."""
        return Decision(now_ms, records=[offset_tombstone(*key) for key in self.offsets.of_topic(name)])

    def expire_offsets(self, now_ms: int) -> Decision:
        """Delete offsets older than offsets.retention.minutes, and empty groups that have no offsets left."""
        decision = Decision(now_ms)
        for group_id, group in self.groups.items():
            expired = [
                offset_tombstone(group_id, topic, partition)
                for (topic, partition), committed in self.offsets.of(group_id).items()
                if not group.is_subscribed(topic)
                and self._has_expired(group, committed, now_ms)
                and not self.pending_offsets.contains(group_id, topic, partition)
            ]
            decision.records.extend(expired)
            if (
                group.is_unused
                and not self.pending_offsets.has_group(group_id)
                and len(expired) == len(self.offsets.of(group_id))
            ):
                decision.records.extend(group.tombstones())
        return decision

    def _has_expired(self, group: Group, committed: Committed, now_ms: int) -> bool:
        since = group.offset_expiration_base_ms(committed.committed_ms)
        if since is None:
            return False
        if committed.expires_ms != -1:
            return now_ms >= committed.expires_ms
        return now_ms - since >= self._context.limits.offsets_retention_ms

    def expire(self, now_ms: int) -> Iterator[Decision]:
        """Yield one decision for each passed deadline. Apply each decision before requesting the next."""
        for timer in self.deadlines.due(now_ms):
            decision = Decision(now_ms)
            group = self.groups.get(timer.group_id)
            if group is not None:
                self._kinds[group.type_name].expire(group, timer, decision)
            yield decision

    def start(self, now_ms: int) -> None:
        """Start the session timeouts of all members once the partition is loaded."""
        for group in self.groups.values():
            self._kinds[group.type_name].start(group, now_ms)

    def stop(self, now_ms: int) -> Decision:
        """Answer all waiting requests with NOT_COORDINATOR: another broker is the coordinator now."""
        decision = Decision(now_ms)
        moved = NotCoordinator("the group coordinator has moved (NOT_COORDINATOR)")
        for group in self.groups.values():
            self._kinds[group.type_name].stop(group, moved, decision)
        return decision

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)
    is_replaced_by_later = staticmethod(is_offset_commit)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        records = self.pending_offsets.end(producer_id)
        if committed:
            for record in records:
                self.apply(record)

    def apply(self, record: GroupRecord, producer_id: int = NO_PRODUCER) -> None:
        """Change the state as `record` says; nothing else changes durable state."""
        if producer_id != NO_PRODUCER:
            self.pending_offsets.add(producer_id, record)
            return
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self.offsets.apply(key, value if isinstance(value, OffsetCommitValue) else None)
            if value is None:
                self.pending_offsets.discard(record)
            if value is not None and key.group not in self.groups:
                self.groups[key.group] = ClassicGroup(key.group)
            return
        group_type, group_id = self._types_by_key[type(key)], key.group  # type: ignore[attr-defined]
        group = self.groups.get(group_id)
        if type(group) is not group_type:
            if value is None:
                return  # the group has been deleted, or replaced by one of another type
            group = self.groups[group_id] = group_type(group_id)
        assert group is not None, group_id
        if value is not None or type(key) is not group_type.metadata_key:
            group.apply(key, value)
            return
        del self.groups[group_id]
        if self.offsets.of(group_id):  # they belong to an empty group from now on
            self.groups[group_id] = ClassicGroup(group_id)


def _offset_records(commit: Commit) -> list[GroupRecord]:
    return [
        offset_record(commit.group_id, topic, partition, committed)
        for topic, partition, committed in commit.offsets
    ]


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise errors.InvalidGroupId("the group id is empty")
