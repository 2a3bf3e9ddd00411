"""The coordinator of the groups that one partition of `__consumer_offsets` holds.

It has two verbs. A decision answers a request: it says what to write and whom to answer, and changes nothing
that is written down. `apply` takes one record in; it is all that happens when a broker reads the
partition after a crash, and happens to every record on any other day. So both days end alike.

    decision = coordinator.join(join, waiter, now_ms)     # or the time is up: coordinator.expire(now_ms)
    ... append decision.records ...
    for record in decision.records: coordinator.apply(record)
    ... once they are committed, give everybody in decision.replies an answer ...

Who waits, and until when, is not written down and changes at once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from headrace.coordinator.deadlines import Deadlines
from headrace.coordinator.decision import Waiter
from headrace.coordinator.errors import NotCoordinator
from headrace.coordinator.machine import NO_PRODUCER
from headrace.group.classic import ClassicGroup
from headrace.group.classic_members import ClassicMembers
from headrace.group.classic_protocol import ClassicProtocolMachine, Join, Leaving, Sync
from headrace.group.consumer import (
    LEAVING,
    LEAVING_FOR_A_WHILE,
    ConsumerGroup,
    departure_records,
    first_records,
)
from headrace.group.consumer_protocol import ConsumerProtocolMachine, Draft, Heartbeat, HeartbeatResult
from headrace.group.decision import Decision, Timed, Timer
from headrace.group.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.group.limits import ConsumerTimeouts, GroupLimits
from headrace.group.migration import downgrade, upgrade
from headrace.group.offsets import Committed, Offsets, offset_record, offset_tombstone
from headrace.group.records import (
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
from headrace.group.topics import Topics

Group = ClassicGroup | ConsumerGroup
_PREFIX_CHARS = 255  # of a client's id or an instance's, in the id of a member
_KNOWS_GROUP_ID_NOT_FOUND = 9  # the first version of OffsetCommit whose clients do


class Commit(NamedTuple):
    """An OffsetCommit, without those partitions that cannot be committed."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int  # or the member's epoch
    offsets: Sequence[tuple[str, int, Committed]]
    version: int


class GroupCoordinator:
    """Groups, their offsets, and when something is due.

    `new_id` makes an id that nobody has. `timeouts` is what consumer groups have set for themselves, by
    their ids; whoever owns it may change it at any time.
    """

    def __init__(
        self,
        limits: GroupLimits,
        new_id: Callable[[], str],
        timeouts: Mapping[str, ConsumerTimeouts] = MappingProxyType({}),
    ) -> None:
        self.groups: dict[str, Group] = {}
        self.offsets = Offsets()
        self.topics = Topics()
        self.deadlines: Deadlines[Timer] = Deadlines()
        self._open_transactions: dict[int, list[GroupRecord]] = {}  # by producer id

        def new_member_id(prefix: str) -> str:
            return f"{prefix[:_PREFIX_CHARS]}-{new_id()}"

        self._classic = ClassicProtocolMachine(limits, self.deadlines, new_member_id)
        self._consumer = ConsumerProtocolMachine(limits, timeouts, self.deadlines, new_id)
        self._classic_members = ClassicMembers(self._consumer, self.deadlines, new_member_id)
        self.limits = limits

    def use(self, limits: GroupLimits) -> None:
        """Keep to other limits from now on."""
        self.limits = self._classic.limits = self._consumer.limits = limits

    # -- the classic protocol ------------------------------------------------------------------

    def join(self, join: Join, waiter: Waiter, now_ms: int) -> Decision:
        """JoinGroup: the answer comes when the group is ready for it."""
        _check_group_id(join.group_id)
        limits = self.limits
        if not limits.min_session_timeout_ms <= join.session_timeout_ms <= limits.max_session_timeout_ms:
            raise InvalidSessionTimeout(
                f"a session timeout of {join.session_timeout_ms} ms is not between "
                f"{limits.min_session_timeout_ms} and {limits.max_session_timeout_ms}"
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
                raise UnknownMember(f"there is no group {join.group_id!r}")
            if not join.protocol_type or not join.protocols:
                raise InconsistentProtocol("whoever joins a group has to name a protocol")
            group = ClassicGroup(join.group_id)
            self.groups[join.group_id] = group
        self._classic.join(group, join, waiter, decision)
        return decision

    def _join_consumer_group(
        self, group: ConsumerGroup, join: Join, waiter: Waiter, decision: Decision
    ) -> None:
        had_others = len(group.classic_members()) < len(group.members)
        draft = self._classic_members.join(group, join, self.topics, waiter, decision)
        left = draft.group
        if had_others and len(left.classic_members()) == len(left.members) and self._may_downgrade(left):
            # A static member has come back as a classic one, and was the last that was not.
            decision.records.extend(downgrade(left, self.topics, decision.now_ms))
            for member_id in left.members:
                self.deadlines.clear(Timer(Timed.RESYNC, group.group_id, member_id))
                self.deadlines.clear(Timer(Timed.REJOIN, group.group_id, member_id))

    def sync(self, sync: Sync, waiter: Waiter, now_ms: int) -> Decision:
        """SyncGroup: the answer comes when the leader has said who reads what."""
        _check_group_id(sync.group_id)
        decision = Decision(now_ms)
        group = self._member_group(sync.group_id)
        if isinstance(group, ClassicGroup):
            if Timer(Timed.REBALANCE, sync.group_id) in self.deadlines:
                # It was a consumer group a moment ago: what its members are to have, others may still have.
                raise RebalanceInProgress(f"group {sync.group_id!r} comes together anew")
            self._classic.sync(group, sync, waiter, decision)
        else:
            self._classic_members.sync(group, sync, self.topics, waiter, decision)
        return decision

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Heartbeat: nothing is written, so there is no decision to carry out."""
        _check_group_id(group_id)
        group = self._member_group(group_id)
        machine = self._classic if isinstance(group, ClassicGroup) else self._classic_members
        machine.heartbeat(group, member_id, instance_id, generation, now_ms)  # type: ignore[arg-type]

    def leave(self, group_id: str, leaving: Sequence[Leaving], now_ms: int) -> Decision:
        """LeaveGroup: the answer is one error, or None, for each."""
        _check_group_id(group_id)
        decision = Decision(now_ms)
        group = self.groups.get(group_id)
        if group is None:
            decision.answer = [UnknownMember(f"there is no group {group_id!r}") for _ in leaving]
        elif isinstance(group, ClassicGroup):
            decision.answer = self._classic.leave(group, leaving, decision)
        else:
            decision.answer = self._classic_members.leave(group, leaving, decision)
        return decision

    def _member_group(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise UnknownMember(f"there is no group {group_id!r}")
        return group

    # -- the consumer protocol -----------------------------------------------------------------

    def consumer_heartbeat(self, beat: Heartbeat, now_ms: int) -> Decision:
        """ConsumerGroupHeartbeat: joins, stays, moves on, or leaves; the answer is a `HeartbeatResult`."""
        self._consumer.check(beat)
        decision = Decision(now_ms)
        group = self.groups.get(beat.group_id)
        if beat.epoch in {LEAVING, LEAVING_FOR_A_WHILE}:
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
        if beat.epoch == LEAVING_FOR_A_WHILE:
            self._consumer.step_out(group, member, decision)
        else:
            self._fence(group, member.member_id, decision)
        return HeartbeatResult(member.member_id, beat.epoch, 0)

    def _begin_consumer_group(
        self, classic: ClassicGroup | None, beat: Heartbeat, decision: Decision
    ) -> HeartbeatResult:
        """The first member of a consumer group; a classic group of the name becomes one, if it can."""
        group = ConsumerGroup(beat.group_id)
        if classic is None or not classic.members:
            beginning = first_records(beat.group_id)
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
            again = RebalanceInProgress(f"group {beat.group_id!r} is a consumer group now")
            self._classic.dismiss(classic, again, decision)
            self._consumer.restart(group, decision.now_ms)
        return answer

    def _check_upgrade(self, group: ClassicGroup) -> None:
        limits = self.limits
        if not (
            limits.may_upgrade
            and group.uses_consumer_protocol
            and len(group.members) <= limits.consumer_max_size
        ):
            raise GroupIdNotFound(
                f"classic group {group.group_id!r} cannot be upgraded while it has these members"
            )

    def _may_downgrade(self, group: ConsumerGroup) -> bool:
        return self.limits.may_downgrade and 0 < len(group.members) <= self.limits.max_size

    def _is_last_of_its_kind(self, group: ConsumerGroup, leaving: str) -> bool:
        """Whether all that stay, and some do, speak the classic protocol."""
        others = [member for member in group.members.values() if member.member_id != leaving]
        member = group.members.get(leaving)
        return (
            bool(others)
            and member is not None
            and member.classic is None
            and all(other.classic is not None for other in others)
            and self.limits.may_downgrade
            and len(others) <= self.limits.max_size
        )

    def _fence(self, group: ConsumerGroup, member_id: str, decision: Decision) -> None:
        """Remove a member; if only classic ones are left, theirs is a classic group again."""
        if not self._is_last_of_its_kind(group, member_id):
            self._consumer.remove(group, [member_id], decision)
            return
        # Its generation is the group's epoch as it is: those who stay are at it, and their heartbeats fit.
        draft = Draft(group, decision)
        draft.write(*departure_records(group.group_id, member_id))
        self._consumer.forget(group.group_id, member_id)
        left = draft.group
        decision.records.extend(downgrade(left, self.topics, decision.now_ms))
        for other in left.members:
            self.deadlines.clear(Timer(Timed.REJOIN, group.group_id, other))
            self.deadlines.clear(Timer(Timed.RESYNC, group.group_id, other))
        self.deadlines.set(Timer(Timed.REBALANCE, group.group_id), decision.now_ms)

    def _consumer_group(self, group_id: str) -> ConsumerGroup:
        group = self.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            raise GroupIdNotFound(f"there is no consumer group {group_id!r}")
        return group

    # -- offsets -------------------------------------------------------------------------------

    def commit(self, commit: Commit, now_ms: int) -> Decision:
        """OffsetCommit: refused as a whole, or written as a whole."""
        decision = Decision(now_ms)
        group = self.groups.get(commit.group_id)
        if group is None:
            if commit.generation >= 0:
                kind = GroupIdNotFound if commit.version >= _KNOWS_GROUP_ID_NOT_FOUND else IllegalGeneration
                raise kind(f"there is no group {commit.group_id!r}")
        elif isinstance(group, ClassicGroup):
            group.check_commit(commit.member_id, commit.instance_id, commit.generation)
            self._classic.keep_alive(group, commit.member_id, now_ms)
        else:
            group.check_commit(commit.member_id, commit.generation, commit.version)
        decision.records = [
            offset_record(commit.group_id, topic, partition, committed)
            for topic, partition, committed in commit.offsets
        ]
        return decision

    def check_fetch(self, group_id: str, member_id: str | None, epoch: int) -> None:
        """Raise unless this member may read the group's offsets; who says it is no member always may."""
        group = self.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(member_id, epoch)

    def delete_offsets(self, group_id: str, places: Sequence[tuple[str, int]], now_ms: int) -> Decision:
        """OffsetDelete: the answer is the set of topics that the group subscribes to, and so keeps."""
        _check_group_id(group_id)
        group = self._known(group_id)
        group.check_delete_offsets()
        decision = Decision(now_ms)
        decision.answer = {topic for topic, _ in places if group.is_subscribed(topic)}
        decision.records = [
            offset_tombstone(group_id, topic, partition)
            for topic, partition in places
            if topic not in decision.answer and self.offsets.get(group_id, topic, partition) is not None
        ]
        return decision

    def delete_group(self, group_id: str, now_ms: int) -> Decision:
        """DeleteGroups: forget an empty group with its offsets."""
        group = self._known(group_id)
        group.check_delete()
        return Decision(now_ms, records=[*self.offsets.tombstones(group_id), *_tombstones(group)])

    def _known(self, group_id: str) -> Group:
        group = self.groups.get(group_id)
        if group is None:
            raise GroupIdNotFound(f"there is no group {group_id!r}")
        return group

    def forget_topic(self, name: str, now_ms: int) -> Decision:
        """The topic is gone: its offsets go too, so that a new topic of the name begins anew."""
        return Decision(now_ms, records=[offset_tombstone(*place) for place in self.offsets.of_topic(name)])

    def expire_offsets(self, now_ms: int) -> Decision:
        """Forget offsets that nobody has needed for so long, and groups that have nothing else."""
        decision = Decision(now_ms)
        for group_id, group in self.groups.items():
            expired = [
                offset_tombstone(group_id, topic, partition)
                for (topic, partition), committed in self.offsets.of(group_id).items()
                if not group.is_subscribed(topic) and self._has_expired(group, committed, now_ms)
            ]
            decision.records.extend(expired)
            if group.is_empty and len(expired) == len(self.offsets.of(group_id)) and _has_nobody(group):
                decision.records.extend(_tombstones(group))
        return decision

    def _has_expired(self, group: Group, committed: Committed, now_ms: int) -> bool:
        since = group.offsets_age_from(committed.committed_ms)
        if since is None:
            return False
        if committed.expires_ms != -1:
            return now_ms >= committed.expires_ms
        return now_ms - since >= self.limits.offsets_retention_ms

    # -- time ----------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> Iterator[Decision]:
        """What time has decided by now. Each has to be carried out before the next is asked for."""
        for timer in self.deadlines.due(now_ms):
            if timer in self.deadlines:
                continue  # what was due before it has moved it on
            decision = Decision(now_ms)
            group = self.groups.get(timer.group_id)
            if isinstance(group, ClassicGroup):
                self._expire_classic(timer, group, decision)
            elif isinstance(group, ConsumerGroup) and timer.member_id in group.members:
                self._fence(group, timer.member_id, decision)
            yield decision

    def _expire_classic(self, timer: Timer, group: ClassicGroup, decision: Decision) -> None:
        if timer.what is Timed.SESSION:
            self._classic.session_is_over(group, timer.member_id, decision)
        elif timer.what is Timed.JOIN:
            self._classic.join_time_is_up(group, decision)
        elif timer.what is Timed.SYNC:
            self._classic.sync_time_is_up(group, decision)
        elif timer.what is Timed.REBALANCE:
            self._classic.begin_rebalance(group, decision)

    def start(self, now_ms: int) -> None:
        """All records are read: from now on members are expected to be heard from."""
        for group in self.groups.values():
            machine = self._classic if isinstance(group, ClassicGroup) else self._consumer
            machine.restart(group, now_ms)  # type: ignore[arg-type]

    def stop(self, now_ms: int) -> Decision:
        """Another broker coordinates these groups from now on: whoever waits is told to look for it."""
        decision = Decision(now_ms)
        for group in self.groups.values():
            if isinstance(group, ClassicGroup):
                self._classic.dismiss(group, NotCoordinator("the coordinator has moved"), decision)
        return decision

    # -- records -------------------------------------------------------------------------------

    encode = staticmethod(encode_record)
    decode = staticmethod(decode_record)
    is_replaced_by_later = staticmethod(is_offset_commit)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply or drop the offsets of the producer's transaction."""
        records = self._open_transactions.pop(producer_id, ())
        if committed:
            for record in records:
                self.apply(record)

    def apply(self, record: GroupRecord, producer_id: int = NO_PRODUCER) -> None:
        """Change the state as `record` says; nothing else changes durable state."""
        if producer_id != NO_PRODUCER:
            self._open_transactions.setdefault(producer_id, []).append(record)
            return
        key, value = record
        if isinstance(key, OffsetCommitKey):
            self.offsets.apply(key, value if isinstance(value, OffsetCommitValue) else None)
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
        """The group is gone; offsets that are left belong to a group that has nothing but them."""
        del self.groups[group_id]
        if self.offsets.of(group_id):
            self.groups[group_id] = ClassicGroup(group_id)


def _check_group_id(group_id: str) -> None:
    if not group_id:
        raise InvalidGroupId("a group must have a name")


def _tombstones(group: Group) -> list[GroupRecord]:
    return [group.tombstone()] if isinstance(group, ClassicGroup) else group.tombstones()


def _has_nobody(group: Group) -> bool:
    return not (isinstance(group, ClassicGroup) and group.pending)
