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
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Producer, Waiter
from headrace.coordinators.errors import NotCoordinator
from headrace.coordinators.group.classic import ClassicGroup
from headrace.coordinators.group.classic_members import ClassicMembers
from headrace.coordinators.group.classic_protocol import ClassicProtocolMachine, Join, Leaving, Sync
from headrace.coordinators.group.consumer import (
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroup,
    initial_group_records,
    member_tombstones,
)
from headrace.coordinators.group.consumer_protocol import (
    ConsumerProtocolMachine,
    GroupUpdate,
    Heartbeat,
    HeartbeatResult,
)
from headrace.coordinators.group.decision import Decision, Timer, TimerKind
from headrace.coordinators.group.errors import (
    GroupIdNotFound,
    GroupNotEmpty,
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownMember,
)
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.coordinators.group.migration import downgrade, upgrade
from headrace.coordinators.group.offsets import Committed, Offsets, offset_record, offset_tombstone
from headrace.coordinators.group.pending_offsets import PendingOffsets
from headrace.coordinators.group.records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_record,
    encode_record,
    is_offset_commit,
)
from headrace.coordinators.machine import NO_PRODUCER, CoordinatorMachine

Group = ClassicGroup | ConsumerGroup
_PREFIX_CHARS = 255  # how much of the client id or instance id a member id begins with
_GROUP_ID_NOT_FOUND_SINCE = 9  # the first OffsetCommit version that may return GROUP_ID_NOT_FOUND
_TXN_EPOCH_ERRORS_SINCE = 6  # the first TxnOffsetCommit version that may return that, and STALE_MEMBER_EPOCH


class Commit(NamedTuple):
    """An OffsetCommit or TxnOffsetCommit, without the partitions that the handler has refused already."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int  # in a consumer group, the member epoch
    offsets: Sequence[tuple[str, int, Committed]]
    version: int


class GroupCoordinator(CoordinatorMachine[GroupRecord]):
    """Groups, their committed offsets and their deadlines.

    `new_id` returns a unique id. `timeouts` are the timeouts that consumer groups override, by group id;
    the owner of the mapping may change it at any time.
    """

    def __init__(
        self,
        limits: GroupLimits,
        new_id: Callable[[], str],
        timeouts: Mapping[str, ConsumerTimeouts] = MappingProxyType({}),
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.deadlines: Deadlines[Timer] = Deadlines()
        self.pending_offsets = PendingOffsets()

        def new_member_id(prefix: str) -> str:
            return f"{prefix[:_PREFIX_CHARS]}-{new_id()}"

        self._classic = ClassicProtocolMachine(limits, self.deadlines, new_member_id)
        self._consumer = ConsumerProtocolMachine(limits, timeouts, self.deadlines, new_id)
        self._classic_members = ClassicMembers(self._consumer, self.deadlines, new_member_id)
        self.limits = limits

    def use(self, limits: GroupLimits) -> None:
        """Replace the limits; they apply from the next request on."""
        self.limits = self._classic.limits = self._consumer.limits = limits

    # -- the classic protocol ------------------------------------------------------------------

    def join(self, join: Join, waiter: Waiter, now_ms: int) -> Decision:
        """JoinGroup: the reply is sent when the rebalance completes the join phase."""
        _check_group_id(join.group_id)
        limits = self.limits
        if not limits.min_session_timeout_ms <= join.session_timeout_ms <= limits.max_session_timeout_ms:
            raise InvalidSessionTimeout(
                f"session timeout {join.session_timeout_ms} ms is not between "
                f"{limits.min_session_timeout_ms} and {limits.max_session_timeout_ms} ms"
            )
        decision = Decision(now_ms)
        group = self.groups.get(join.group_id)
        if isinstance(group, ConsumerGroup):
            if not group.is_empty:
                self._join_consumer_group(group, join, waiter, decision)
                return decision
            if join.member_id:
                raise UnknownMember(f"group {join.group_id!r} has no member {join.member_id!r}")
            decision.records.extend(group.tombstones())
            group = None
        if group is None:
            if join.member_id:
                raise UnknownMember(f"group {join.group_id!r} does not exist")
            if not join.protocol_type or not join.protocols:
                raise InconsistentProtocol(
                    f"the first member of group {join.group_id!r} names no protocol type or no protocols"
                )
            group = ClassicGroup(join.group_id)
            self.groups[join.group_id] = group
        self._classic.join(group, join, waiter, decision)
        return decision

    def _join_consumer_group(
        self, group: ConsumerGroup, join: Join, waiter: Waiter, decision: Decision
    ) -> None:
        had_others = len(group.classic_members()) < len(group.members)
        update = self._classic_members.join(group, join, self.topics, waiter, decision)
        joined = update.group
        all_classic = len(joined.classic_members()) == len(joined.members)
        if had_others and all_classic and self._may_downgrade(len(joined.members)):
            # The last member with the consumer protocol was static, and has rejoined with the classic one.
            self._downgrade(joined, decision)

    def sync(self, sync: Sync, waiter: Waiter, now_ms: int) -> Decision:
        """SyncGroup: the reply is sent when the leader's assignment is committed."""
        _check_group_id(sync.group_id)
        decision = Decision(now_ms)
        group = self._member_group(sync.group_id)
        if isinstance(group, ClassicGroup):
            self._classic.sync(group, sync, waiter, decision)
        else:
            self._classic_members.sync(group, sync, self.topics, waiter, decision)
        return decision

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Heartbeat: raise RebalanceInProgress if the member has to rejoin. No record is written."""
        _check_group_id(group_id)
        group = self._member_group(group_id)
        machine = self._classic if isinstance(group, ClassicGroup) else self._classic_members
        machine.heartbeat(group, member_id, instance_id, generation, now_ms)  # type: ignore[arg-type]

    def leave(self, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Decision:
        """LeaveGroup: the answer has one error or None for each member."""
        _check_group_id(group_id)
        decision = Decision(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            decision.answer = [UnknownMember(f"group {group_id!r} does not exist") for _ in leaving]
        elif isinstance(group, ClassicGroup):
            decision.answer = self._classic.leave(group, leaving, decision)
        else:
            decision.answer = self._classic_members.leave(group, leaving, decision)
        return decision

    def _member_group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise UnknownMember(f"group {group_id!r} does not exist")
        return group

    # -- the consumer protocol -----------------------------------------------------------------

    def consumer_heartbeat(self, beat: Heartbeat, now_ms: int) -> Decision:
        """ConsumerGroupHeartbeat: join, reconcile or leave; the answer is a `HeartbeatResult`."""
        self._consumer.check(beat)
        decision = Decision(now_ms)
        group = self.groups.get(beat.group_id)
        if beat.epoch in {LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH}:
            decision.answer = self._leave_consumer_group(beat, decision)
        elif beat.epoch == 0 and not isinstance(group, ConsumerGroup):
            decision.answer = self._begin_consumer_group(group, beat, decision)
        else:
            group = self._consumer_group(beat.group_id)
            decision.answer = self._consumer.heartbeat(group, beat, self.topics, decision)
        return decision

    def _leave_consumer_group(self, beat: Heartbeat, decision: Decision) -> HeartbeatResult:
        group = self._consumer_group(beat.group_id)
        member = group.member(beat.member_id, beat.instance_id)
        if beat.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            self._consumer.leave_as_static_member(group, member, decision)
        else:
            self._fence(group, member.member_id, decision)
        return HeartbeatResult(member.member_id, beat.epoch, 0)

    def _begin_consumer_group(
        self, classic: ClassicGroup | None, beat: Heartbeat, decision: Decision
    ) -> HeartbeatResult:
        """Create a consumer group for its first member, or upgrade the classic group of that name."""
        group = ConsumerGroup(beat.group_id)
        if classic is None or not classic.members:
            beginning = initial_group_records(beat.group_id)
        else:
            self._check_upgrade(classic)
            beginning = upgrade(classic, self.topics)
        if classic is not None:
            decision.records.append(classic.tombstone())
        for record in beginning:
            decision.records.append(record)
            group.apply(record.key, record.value)
        answer = self._consumer.heartbeat(group, beat, self.topics, decision)
        if classic is not None:
            upgraded = RebalanceInProgress(
                f"group {beat.group_id!r} was upgraded to a consumer group: rejoin"
            )
            self._classic.cancel(classic, upgraded, decision)
            self._consumer.schedule_session_timeouts(group, decision.now_ms)
        return answer

    def _check_upgrade(self, group: ClassicGroup) -> None:
        limits = self.limits
        if not (
            limits.may_upgrade
            and group.uses_consumer_protocol
            and len(group.members) <= limits.consumer_max_size
        ):
            raise GroupIdNotFound(
                f"group {group.group_id!r} is a classic group with members and cannot be upgraded "
                "(group.consumer.migration.policy, protocol type or group.consumer.max.size)"
            )

    def _may_downgrade(self, members: int) -> bool:
        return self.limits.may_downgrade and 0 < members <= self.limits.max_size

    def _removal_triggers_downgrade(self, group: ConsumerGroup, member_id: str) -> bool:
        """Return whether `member_id` is the only member with the consumer protocol among classic members."""
        others = [member for member in group.members.values() if member.member_id != member_id]
        member = group.members.get(member_id)
        return (
            member is not None
            and member.classic is None
            and all(other.classic is not None for other in others)
            and self._may_downgrade(len(others))
        )

    def _fence(self, group: ConsumerGroup, member_id: str, decision: Decision) -> None:
        """Remove a member; downgrade the group if only classic members remain."""
        if not self._removal_triggers_downgrade(group, member_id):
            self._consumer.remove(group, [member_id], decision)
            return
        # The group epoch does not change: it becomes the generation, and the heartbeats of the remaining
        # members name it already.
        update = GroupUpdate(group, decision)
        update.write(*member_tombstones(group.group_id, member_id))
        self._consumer.cancel_timers(group.group_id, member_id)
        self._downgrade(update.group, decision)
        decision.on_applied = partial(self._rebalance_downgraded, group.group_id, decision.now_ms)

    def _rebalance_downgraded(self, group_id: str, now_ms: int) -> None:
        """Begin a rebalance: members may still own partitions that the target assigns to others."""
        group = self.groups[group_id]
        assert isinstance(group, ClassicGroup)
        self._classic.rebalance(group, Decision(now_ms))  # no member waits, so it has no replies

    def _downgrade(self, group: ConsumerGroup, decision: Decision) -> None:
        decision.records.extend(downgrade(group, self.topics, decision.now_ms))
        for member_id in group.members:
            self.deadlines.clear(Timer(TimerKind.REJOIN, group.group_id, member_id))
            self.deadlines.clear(Timer(TimerKind.RESYNC, group.group_id, member_id))

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"consumer group {group_id!r} does not exist")
        return group

    # -- offsets -------------------------------------------------------------------------------

    def commit(self, commit: Commit, now_ms: int) -> Decision:
        """OffsetCommit: commit all offsets, or raise and commit none."""
        group = self.groups.get(commit.group_id)
        if group is None:
            if commit.generation >= 0:
                kind = GroupIdNotFound if commit.version >= _GROUP_ID_NOT_FOUND_SINCE else IllegalGeneration
                raise kind(f"group {commit.group_id!r} does not exist")
        elif isinstance(group, ClassicGroup):
            group.check_commit(commit.member_id, commit.instance_id, commit.generation)
            self._classic.keep_alive(group, commit.member_id, now_ms)
        else:
            group.check_commit(commit.member_id, commit.generation, commit.version)
        return Decision(now_ms, records=_offset_records(commit))

    def commit_in_transaction(self, commit: Commit, producer: Producer, now_ms: int) -> Decision:
        """TxnOffsetCommit: the offsets take effect when the producer's transaction is committed."""
        _check_group_id(commit.group_id)
        try:
            if commit.group_id in self.groups or commit.generation >= 0:
                group = self._existing_group(commit.group_id)
                group.check_transactional_commit(commit.member_id, commit.instance_id, commit.generation)
        except (GroupIdNotFound, StaleMemberEpoch) as error:
            if commit.version < _TXN_EPOCH_ERRORS_SINCE:
                raise IllegalGeneration(str(error)) from error
            raise
        return Decision(now_ms, records=_offset_records(commit), producer=producer)

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise unless the member may fetch the group's offsets; a request without a member always may."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(member_id, epoch)

    def delete_offsets(self, group_id: str, partitions: Sequence[tuple[str, int]], now_ms: int) -> Decision:
        """OffsetDelete: the answer is the set of topics that the group subscribes to and therefore keeps."""
        _check_group_id(group_id)
        group = self._existing_group(group_id)
        if isinstance(group, ClassicGroup):
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
        group = self._existing_group(group_id)
        if not group.is_empty:
            raise GroupNotEmpty(f"group {group_id!r} has {len(group.members)} members")
        offsets = [*self.offsets.tombstones(group_id), *self.pending_offsets.tombstones(group_id)]
        return Decision(now_ms, records=[*offsets, *_tombstones(group)])

    def _existing_group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"group {group_id!r} does not exist")
        return group

    follows_topics = True

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
            has_pending = isinstance(group, ClassicGroup) and bool(group.pending)
            has_pending = has_pending or self.pending_offsets.has_group(group_id)
            if group.is_empty and not has_pending and len(expired) == len(self.offsets.of(group_id)):
                decision.records.extend(_tombstones(group))
        return decision

    def _has_expired(self, group: Group, committed: Committed, now_ms: int) -> bool:
        since = group.offset_expiration_base_ms(committed.committed_ms)
        if since is None:
            return False
        if committed.expires_ms != -1:
            return now_ms >= committed.expires_ms
        return now_ms - since >= self.limits.offsets_retention_ms

    # -- time ----------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> Iterator[Decision]:
        """Yield one decision for each passed deadline. Apply each decision before requesting the next."""
        for timer in self.deadlines.due(now_ms):
            decision = Decision(now_ms)
            group = self.groups.get(timer.group_id)
            if isinstance(group, ClassicGroup):
                self._expire_classic(timer, group, decision)
            elif isinstance(group, ConsumerGroup) and timer.member_id in group.members:
                self._fence(group, timer.member_id, decision)
            yield decision

    def _expire_classic(self, timer: Timer, group: ClassicGroup, decision: Decision) -> None:
        if timer.kind is TimerKind.SESSION:
            self._classic.expire_session(group, timer.member_id, decision)
        elif timer.kind is TimerKind.JOIN:
            self._classic.expire_join(group, decision)
        elif timer.kind is TimerKind.SYNC:
            self._classic.expire_sync(group, decision)

    def start(self, now_ms: int) -> None:
        """Start the session timeouts of all members once the partition is loaded."""
        for group in self.groups.values():
            machine = self._classic if isinstance(group, ClassicGroup) else self._consumer
            machine.schedule_session_timeouts(group, now_ms)  # type: ignore[arg-type]

    def stop(self, now_ms: int) -> Decision:
        """Answer all waiting requests with NOT_COORDINATOR: another broker is the coordinator now."""
        decision = Decision(now_ms)
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                self._classic.cancel(
                    group, NotCoordinator("the group coordinator has moved (NOT_COORDINATOR)"), decision
                )
        return decision

    # -- records -------------------------------------------------------------------------------

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)
    is_replaced_by_later = staticmethod(is_offset_commit)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or drop the offsets of the producer's transaction."""
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
        elif isinstance(key, GroupMetadataKey):
            self._apply_classic(key.group, value if isinstance(value, GroupMetadataValue) else None)
        elif isinstance(key, ConsumerGroupMetadataKey) and value is None:
            if isinstance(self.groups.get(key.group), ConsumerGroup):
                self._drop(key.group)
        else:
            group_id: str = key.group  # type: ignore[attr-defined]
            group = self.groups.get(group_id)
            if not isinstance(group, ConsumerGroup):
                if value is None:
                    return
                group = self.groups[group_id] = ConsumerGroup(group_id)
            group.apply(key, value)

    def _apply_classic(self, group_id: str, value: GroupMetadataValue | None) -> None:
        group = self.groups.get(group_id)
        if value is None:
            if isinstance(group, ClassicGroup):
                self._drop(group_id)
            return
        if not isinstance(group, ClassicGroup):
            group = self.groups[group_id] = ClassicGroup(group_id)
        group.apply(value)

    def _drop(self, group_id: str) -> None:
        """Delete the group; remaining offsets belong to an empty group from now on."""
        del self.groups[group_id]
        if self.offsets.of(group_id):
            self.groups[group_id] = ClassicGroup(group_id)


def _offset_records(commit: Commit) -> list[GroupRecord]:
    return [
        offset_record(commit.group_id, topic, partition, committed)
        for topic, partition, committed in commit.offsets
    ]


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("the group id is empty")


def _tombstones(group: Group) -> list[GroupRecord]:
    return [group.tombstone()] if isinstance(group, ClassicGroup) else group.tombstones()
