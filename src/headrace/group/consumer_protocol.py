"""The consumer protocol (KIP-848): how ConsumerGroupHeartbeat and time move a consumer group.

A decision is made on a draft: a copy of the group, made when the first record is, on which each record is
tried as soon as it is decided. The group itself changes when the records are applied.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from headrace.coordinator.deadlines import Deadlines
from headrace.group.assignors import ASSIGNORS, Assignment, AssignorMember
from headrace.group.consumer import (
    LEAVING_FOR_A_WHILE,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    current_record,
    departure_records,
    epoch_record,
    expression_record,
    member_record,
    target_epoch_record,
    target_record,
)
from headrace.group.decision import Client, Decision, Timed, Timer
from headrace.group.errors import (
    FencedMemberEpoch,
    GroupIsFull,
    InvalidGroupRequest,
    UnreleasedInstance,
    UnsupportedAssignor,
)
from headrace.group.limits import ConsumerTimeouts, GroupLimits
from headrace.group.reconcile import Owned, reconcile
from headrace.group.records import GroupRecord
from headrace.group.topics import Topics, compile_expression

_MOVING_MS = 10_000  # after a change, heartbeats come more often for so long
_MOVING_INTERVAL_MS = 1_000


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat. What is None, or -1, has not changed since the last one."""

    group_id: str
    member_id: str
    epoch: int
    client: Client
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    expression: str | None = None
    assignor: str | None = None
    owned: Owned | None = None

    @property
    def is_full(self) -> bool:
        """Whether the member tells everything, and wants to be told everything."""
        return self.epoch == 0 or (
            self.rebalance_timeout_ms != -1
            and (self.topics is not None or self.expression is not None)
            and self.owned is not None
        )

    def told_of(self, member: ConsumerMember) -> ConsumerMember:
        """The member, as it is after what it says of itself; the same one if that is nothing new."""
        said: dict[str, Any] = {
            name: value
            for name, value in (
                ("instance_id", self.instance_id),
                ("rack_id", self.rack_id),
                ("topics", self.topics),
                ("assignor", self.assignor),
            )
            if value is not None
        }
        if self.rebalance_timeout_ms != -1:
            said["rebalance_timeout_ms"] = self.rebalance_timeout_ms
        if self.expression is not None:
            said["expression"] = self.expression or None
        if not said and member.classic is None and self.client == (member.client_id, member.client_host):
            return member
        client_id, client_host = self.client
        return replace(member, client_id=client_id, client_host=client_host, classic=None, **said)


_NO_OWN: Final = ConsumerTimeouts()


class HeartbeatResult(NamedTuple):
    """The answer to a heartbeat. Without an assignment, nothing has changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None = None


class Draft:
    """A group, as it will be when the records are applied that were decided so far."""

    def __init__(self, group: ConsumerGroup, decision: Decision) -> None:
        self.group = group
        self.decision = decision
        self._original = group

    def write(self, *records: GroupRecord) -> None:
        if self.group is self._original:
            self.group = self._original.draft()
        for record in records:
            self.decision.records.append(record)
            self.group.apply(record.key, record.value)

    def has_seen(self, topics: Topics) -> None:
        """The topics have been looked at: no need to do so again before they change."""
        self.group.seen_topics = self._original.seen_topics = topics.version


class ConsumerProtocolMachine:
    """Moves consumer groups. It has no groups of its own, only their deadlines."""

    def __init__(
        self,
        limits: GroupLimits,
        timeouts: Mapping[str, ConsumerTimeouts],
        deadlines: Deadlines[Timer],
        new_member_id: Callable[[], str],
    ) -> None:
        self.limits = limits
        self._timeouts = timeouts
        self._deadlines = deadlines
        self._new_member_id = new_member_id

    # -- heartbeats ----------------------------------------------------------------------------

    def check(self, beat: Heartbeat) -> None:
        """Raise if the request makes no sense, whatever the group."""
        _refuse_blank(group_id=beat.group_id, instance_id=beat.instance_id, rack_id=beat.rack_id)
        if beat.epoch < LEAVING_FOR_A_WHILE:
            raise InvalidGroupRequest(f"{beat.epoch} is no member epoch")
        if beat.epoch:
            _refuse_blank(member_id=beat.member_id)
        if beat.epoch == LEAVING_FOR_A_WHILE and beat.instance_id is None:
            raise InvalidGroupRequest("only a member with an instance id can leave for a while")
        if beat.epoch == 0:
            if beat.rebalance_timeout_ms == -1:
                raise InvalidGroupRequest("whoever joins has to name a rebalance timeout")
            if beat.owned is None or beat.owned:
                raise InvalidGroupRequest("whoever joins can own nothing, and has to say so")
            if beat.topics is None and beat.expression is None:
                raise InvalidGroupRequest("whoever joins has to subscribe to something")
        if beat.assignor is not None and beat.assignor not in self.limits.consumer_assignors:
            raise UnsupportedAssignor(
                f"there is no assignor {beat.assignor!r}, only {', '.join(self.limits.consumer_assignors)}"
            )
        if beat.expression:
            compile_expression(beat.expression)

    def heartbeat(
        self, group: ConsumerGroup, beat: Heartbeat, topics: Topics, decision: Decision
    ) -> HeartbeatResult:
        """Take in what the member says, and move it one step; it says how far it is now."""
        draft = Draft(group, decision)
        member = self._find_member(draft, beat)
        updated = self.advance(draft, member, beat.told_of(member), topics, beat.owned)
        session_ms = self.session_timeout_ms(group.group_id)
        self.expect(group.group_id, updated.member_id, session_ms, decision.now_ms)
        self._watch_revocation(
            group.group_id, updated, decision.now_ms, anew=updated.revoking != member.revoking
        )
        if draft.group.epoch != group.epoch and group.members:  # who is alone has nobody to wait for
            group.changed_ms = decision.now_ms
        changed = beat.is_full or updated.assigned != member.assigned
        interval_ms = self._interval(group, decision.now_ms)
        return HeartbeatResult(
            updated.member_id, updated.epoch, interval_ms, updated.assigned if changed else None
        )

    def _interval(self, group: ConsumerGroup, now_ms: int) -> int:
        """How soon to be heard from again: sooner while the group is finding its new shape.

        What one member gives up reaches another with the heartbeats of both.
        """
        own = self._timeouts.get(group.group_id, _NO_OWN)
        interval_ms = own.heartbeat_interval_ms or self.limits.consumer_heartbeat_interval_ms
        moving = now_ms - group.changed_ms < _MOVING_MS
        return min(interval_ms, _MOVING_INTERVAL_MS) if moving else interval_ms

    def _find_member(self, draft: Draft, beat: Heartbeat) -> ConsumerMember:
        """The member that heartbeats, as it was; a new one if it joins."""
        group, joins = draft.group, beat.epoch == 0
        member_id = beat.member_id or self._new_member_id()
        if beat.instance_id is None or not joins:
            known = group.members.get(member_id)
            if known is None and joins:
                return self._new_member(group, member_id)
            member = group.member(member_id, beat.instance_id)
            if not joins:
                _check_epoch(member, beat)
            return member
        holder_id = group.instances.get(beat.instance_id)
        if holder_id is None:
            return self._new_member(group, member_id)
        holder = group.members[holder_id]
        if holder_id == member_id and holder.classic is None and holder.epoch != LEAVING_FOR_A_WHILE:
            return holder  # its answer got lost
        if holder.classic is None and holder.epoch != LEAVING_FOR_A_WHILE:
            raise UnreleasedInstance(
                f"instance {beat.instance_id!r} belongs to {holder_id}, which has not left"
            )
        return self.take_over(draft, holder, member_id)

    def _new_member(self, group: ConsumerGroup, member_id: str) -> ConsumerMember:
        if len(group.members) >= self.limits.consumer_max_size:
            raise GroupIsFull(f"group {group.group_id!r} has {len(group.members)} members, as many as it may")
        return ConsumerMember(member_id=member_id)

    def take_over(self, draft: Draft, holder: ConsumerMember, member_id: str) -> ConsumerMember:
        """Give what a static member has, and is to have, to its new incarnation."""
        group_id = draft.group.group_id
        target = draft.group.target.get(holder.member_id, {})
        successor = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
        draft.write(
            *departure_records(group_id, holder.member_id),
            member_record(group_id, successor),
            target_record(group_id, member_id, target),
            current_record(group_id, successor),
        )
        self.forget(group_id, holder.member_id)
        return successor

    # -- the three steps of every change -------------------------------------------------------

    def advance(
        self,
        draft: Draft,
        member: ConsumerMember,
        told: ConsumerMember,
        topics: Topics,
        owned: Owned | None,
    ) -> ConsumerMember:
        """Take `member` for what it has told, bring the target up to date, and move the member towards it."""
        group_id = draft.group.group_id
        bump = False
        if told != member or told.member_id not in draft.group.members:
            draft.write(member_record(group_id, told))
            bump = (told.topics, told.expression) != (member.topics, member.expression)
        self.refresh(draft, topics, bump=bump)
        group = draft.group
        updated = reconcile(
            group.members.get(told.member_id, told),
            target=group.target.get(told.member_id, {}),
            target_epoch=group.target_epoch,
            taken=group.owners.keys(),
            owned=owned,
            subscribed=topics.ids(group.topics_of(told)) if bump else None,
        )
        if updated != group.members.get(told.member_id):
            draft.write(current_record(group_id, updated))
        return updated

    def refresh(self, draft: Draft, topics: Topics, *, bump: bool) -> None:
        """Bring the group's epoch and its target up to date with subscriptions and topics.

        `bump` says that a subscription has changed, or a member has gone.
        """
        if not bump and draft.group.seen_topics == topics.version:
            if draft.group.epoch > draft.group.target_epoch:
                self._assign(draft, topics)
            return
        self._resolve(draft, topics)
        group = draft.group
        digest = topics.digest(group.subscribed())
        if bump or digest != group.metadata_hash:
            draft.write(epoch_record(group.group_id, group.epoch + 1, digest))
        if draft.group.epoch > draft.group.target_epoch:
            self._assign(draft, topics)
        draft.has_seen(topics)

    def _resolve(self, draft: Draft, topics: Topics) -> None:
        """Find out which topics the members' regular expressions mean now."""
        group_id, wanted = draft.group.group_id, draft.group.expressions()
        unchanged = draft.group.seen_topics == topics.version
        for expression in sorted(wanted):
            if unchanged and expression in draft.group.resolved:
                continue
            found = topics.matching(expression)
            if draft.group.resolved.get(expression) != found:
                record = expression_record(group_id, expression, found, topics.version, draft.decision.now_ms)
                draft.write(record)
        for expression in sorted(draft.group.resolved.keys() - wanted):
            draft.write(expression_record(group_id, expression, None, 0, 0))

    def _assign(self, draft: Draft, topics: Topics) -> None:
        """Make a target for the group's epoch."""
        group = draft.group
        members = {
            member_id: AssignorMember(
                topics=topics.ids(group.topics_of(member)),
                owned=group.target.get(member_id, {}),
                instance_id=member.instance_id,
                rack=member.rack_id,
            )
            for member_id, member in group.members.items()
        }
        partitions = {topic.topic_id: topic.partitions for topic in topics.by_name.values()}
        assignor = ASSIGNORS[group.preferred_assignor() or self.limits.consumer_assignors[0]]
        for member_id, assignment in assignor(members, partitions).items():
            if group.target.get(member_id) != assignment:
                draft.write(target_record(group.group_id, member_id, assignment))
        draft.write(target_epoch_record(group.group_id, draft.group.epoch))

    # -- leaving -------------------------------------------------------------------------------

    def step_out(self, group: ConsumerGroup, member: ConsumerMember, decision: Decision) -> None:
        """A static member will be back: it keeps its place for the time of a session."""
        away = replace(member, epoch=LEAVING_FOR_A_WHILE, revoking={})
        decision.records.append(current_record(group.group_id, away))
        self._deadlines.clear(Timer(Timed.REVOCATION, group.group_id, member.member_id))

    def remove(self, group: ConsumerGroup, member_ids: Collection[str], decision: Decision) -> None:
        """Members are gone; the others are given their partitions with their next heartbeats."""
        draft = Draft(group, decision)
        for member_id in member_ids:
            draft.write(*departure_records(group.group_id, member_id))
            self.forget(group.group_id, member_id)
        draft.write(epoch_record(group.group_id, group.epoch + 1, group.metadata_hash))

    # -- deadlines -----------------------------------------------------------------------------

    def session_timeout_ms(self, group_id: str) -> int:
        """How long a member of the group may be silent."""
        own = self._timeouts.get(group_id, _NO_OWN)
        return own.session_timeout_ms or self.limits.consumer_session_timeout_ms

    def expect(self, group_id: str, member_id: str, within_ms: int, now_ms: int) -> None:
        self._deadlines.set(Timer(Timed.SESSION, group_id, member_id), now_ms + within_ms)

    def _watch_revocation(
        self, group_id: str, member: ConsumerMember, now_ms: int, *, anew: bool = False
    ) -> None:
        timer = Timer(Timed.REVOCATION, group_id, member.member_id)
        if member.state is not MemberState.UNREVOKED:
            self._deadlines.clear(timer)
        elif anew or timer not in self._deadlines:
            self._deadlines.set(timer, now_ms + max(member.rebalance_timeout_ms, 0))

    def restart(self, group: ConsumerGroup, now_ms: int) -> None:
        """The group was read from its records: give every member a session's time to be heard from."""
        for member in group.members.values():
            session_ms = self.session_timeout_ms(group.group_id)
            if member.classic is not None:
                session_ms = member.classic.session_timeout_ms
            else:
                self._watch_revocation(group.group_id, member, now_ms)
            self.expect(group.group_id, member.member_id, session_ms, now_ms)

    def forget(self, group_id: str, member_id: str) -> None:
        for what in (Timed.SESSION, Timed.REVOCATION, Timed.REJOIN, Timed.RESYNC):
            self._deadlines.clear(Timer(what, group_id, member_id))


def _check_epoch(member: ConsumerMember, beat: Heartbeat) -> None:
    """Raise unless the member is where we think, or one step behind because an answer of ours got lost."""
    if beat.epoch == member.epoch:
        return
    is_behind = beat.epoch == member.previous_epoch < member.epoch  # and not away
    missed_an_answer = is_behind and _is_part(beat.owned, member.assigned)
    if not missed_an_answer:
        raise FencedMemberEpoch(
            f"member {member.member_id} is at epoch {member.epoch}, not {beat.epoch}: "
            "it has to give up its partitions and join again"
        )


def _is_part(owned: Owned | None, assigned: Mapping[bytes, frozenset[int]]) -> bool:
    return owned is not None and all(
        assigned.get(topic_id, frozenset()).issuperset(partitions) for topic_id, partitions in owned.items()
    )


def _refuse_blank(**values: str | None) -> None:
    for name, value in values.items():
        if value is not None and not value.strip():
            raise InvalidGroupRequest(f"{name} cannot be empty")
