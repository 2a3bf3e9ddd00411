"""The consumer protocol (KIP-848): ConsumerGroupHeartbeat and the deadlines of a consumer group.

A `GroupUpdate` collects the records of a decision and applies each one to a copy of the group, so that later
steps of the decision see it. The group itself changes when the coordinator applies the committed records.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final, NamedTuple

from headrace.coordinators.group import consumer, errors
from headrace.coordinators.group.assignors import ASSIGNORS, Assignment, AssignorMember
from headrace.coordinators.group.decision import Client, Decision, Timer, TimerKind
from headrace.coordinators.group.kinds import GroupContext
from headrace.coordinators.group.limits import ConsumerTimeouts
from headrace.coordinators.group.reconcile import Owned, reconcile
from headrace.coordinators.group.records import GroupRecord
from headrace.coordinators.topics import Topics, compile_expression

# After a change of the group epoch, members heartbeat more often for a while.
_RECONCILING_MS = 10_000
_RECONCILING_INTERVAL_MS = 1_000


class Heartbeat(NamedTuple):
    """A ConsumerGroupHeartbeat. A field that is None or -1 has not changed since the previous one."""

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
        """Whether the request has all fields; the response then always contains the assignment."""
        return self.epoch == 0 or (
            self.rebalance_timeout_ms != -1
            and (self.topics is not None or self.expression is not None)
            and self.owned is not None
        )

    def apply_to(self, member: consumer.ConsumerMember) -> consumer.ConsumerMember:
        """Return `member` with the fields of this request; the same object if nothing has changed."""
        changes: dict[str, Any] = {
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
            changes["rebalance_timeout_ms"] = self.rebalance_timeout_ms
        if self.expression is not None:
            changes["expression"] = self.expression or None
        client_id, client_host = self.client.client_id, self.client.host
        same_client = (client_id, client_host) == (member.client_id, member.client_host)
        if not changes and member.classic is None and same_client:
            return member
        return replace(member, client_id=client_id, client_host=client_host, classic=None, **changes)


_DEFAULT_TIMEOUTS: Final = ConsumerTimeouts()


class HeartbeatResult(NamedTuple):
    """The response to a heartbeat. Without an assignment, the member's assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int
    assignment: Assignment | None = None


class GroupUpdate:
    """The records of a decision so far, and a copy of the group to which they are applied."""

    def __init__(self, group: consumer.ConsumerGroup, decision: Decision) -> None:
        self.group = group
        self.decision = decision
        self._original = group

    def write(self, *records: GroupRecord) -> None:
        if self.group is self._original:
            self.group = self._original.copy()
        for record in records:
            self.decision.records.append(record)
            self.group.apply(record.key, record.value)

    def mark_topics_seen(self, topics: Topics) -> None:
        """Remember that the group's epoch is up to date with this version of the topics."""
        self.group.seen_topics = self._original.seen_topics = topics.version


class ConsumerProtocolMachine:
    """Decides the records of consumer groups. It keeps their timers, but no groups."""

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self._deadlines = context.deadlines

    def check(self, beat: Heartbeat) -> None:
        """Raise if the request is invalid for any group."""
        _refuse_blank(group_id=beat.group_id, instance_id=beat.instance_id, rack_id=beat.rack_id)
        if beat.epoch < consumer.LEAVE_GROUP_STATIC_MEMBER_EPOCH:
            raise errors.InvalidGroupRequest(f"{beat.epoch} is not a member epoch")
        if beat.epoch:
            _refuse_blank(member_id=beat.member_id)
        if beat.epoch == consumer.LEAVE_GROUP_STATIC_MEMBER_EPOCH and beat.instance_id is None:
            raise errors.InvalidGroupRequest(
                f"member epoch {beat.epoch} is for static members, but the request has no instance id"
            )
        if beat.epoch == 0:
            if beat.rebalance_timeout_ms == -1:
                raise errors.InvalidGroupRequest("a joining member must set its rebalance timeout")
            if beat.owned is None or beat.owned:
                raise errors.InvalidGroupRequest(
                    "a joining member must send an empty list of owned partitions"
                )
            if beat.topics is None and beat.expression is None:
                raise errors.InvalidGroupRequest(
                    "a joining member must set its subscribed topics or expression"
                )
        assignors = self._context.limits.consumer_assignors
        if beat.assignor is not None and beat.assignor not in assignors:
            raise errors.UnsupportedAssignor(f"assignor {beat.assignor!r} is none of {', '.join(assignors)}")
        if beat.expression:
            compile_expression(beat.expression)

    def heartbeat(
        self, group: consumer.ConsumerGroup, beat: Heartbeat, decision: Decision
    ) -> HeartbeatResult:
        """Update the member from the request and reconcile it by one step."""
        update = GroupUpdate(group, decision)
        member = self._find_member(update, beat)
        updated = self.advance(update, member, beat.apply_to(member), beat.owned, client=beat.client)
        self.restart_session(group.group_id, updated, decision.now_ms)
        self._schedule_revocation_timeout(
            group.group_id, updated, decision.now_ms, reset=updated.revoking != member.revoking
        )
        if update.group.epoch != group.epoch and group.members:  # a sole member has nothing to wait for
            group.changed_ms = decision.now_ms
        # While the group reconciles, the interval is shorter: a partition moves by heartbeats of two members.
        own = self._context.timeouts.get(group.group_id, _DEFAULT_TIMEOUTS)
        interval_ms = own.heartbeat_interval_ms or self._context.limits.consumer_heartbeat_interval_ms
        if decision.now_ms - group.changed_ms < _RECONCILING_MS:
            interval_ms = min(interval_ms, _RECONCILING_INTERVAL_MS)
        changed = beat.is_full or updated.assigned != member.assigned
        return HeartbeatResult(
            updated.member_id, updated.epoch, interval_ms, updated.assigned if changed else None
        )

    def _find_member(self, update: GroupUpdate, beat: Heartbeat) -> consumer.ConsumerMember:
        """Return the member that sent the heartbeat, in its current state; a new one if it joins."""
        group, joins = update.group, beat.epoch == 0
        member_id = beat.member_id or self._context.new_id()
        if beat.instance_id is None or not joins:
            if joins and member_id not in group.members:
                return self.new_member(group, member_id)
            member = group.member(member_id, beat.instance_id)
            if not joins:
                _check_epoch(member, beat)
            return member
        holder_id = group.instances.get(beat.instance_id)
        if holder_id is None:
            return self.new_member(group, member_id)
        holder = group.members[holder_id]
        has_left = holder.classic is not None or holder.epoch == consumer.LEAVE_GROUP_STATIC_MEMBER_EPOCH
        if not has_left and holder_id == member_id:
            return holder  # the member repeats a join whose response was lost
        if not has_left:
            raise errors.UnreleasedInstance(
                f"instance id {beat.instance_id!r} belongs to member {holder_id}, which has not left"
            )
        return self.replace_static_member(update, holder, member_id)

    def new_member(self, group: consumer.ConsumerGroup, member_id: str) -> consumer.ConsumerMember:
        """Return a new member; raise GroupIsFull if the group has no room for it."""
        if len(group.members) >= self._context.limits.consumer_max_size:
            raise errors.GroupIsFull(f"group {group.group_id!r} already has {len(group.members)} members")
        return consumer.ConsumerMember(member_id=member_id)

    def replace_static_member(
        self, update: GroupUpdate, holder: consumer.ConsumerMember, member_id: str
    ) -> consumer.ConsumerMember:
        """Replace `holder` by a member with the id `member_id` and the same assignments; return it."""
        group_id = update.group.group_id
        target = update.group.target.get(holder.member_id, {})
        successor = replace(holder, member_id=member_id, epoch=0, previous_epoch=0)
        update.write(
            *consumer.member_tombstones(group_id, holder.member_id),
            consumer.member_record(group_id, successor),
            consumer.target_record(group_id, member_id, target),
            consumer.current_record(group_id, successor),
        )
        self.cancel_timers(group_id, holder.member_id)
        return successor

    def advance(
        self,
        update: GroupUpdate,
        member: consumer.ConsumerMember,
        described: consumer.ConsumerMember,
        owned: Owned | None,
        *,
        client: Client,
    ) -> consumer.ConsumerMember:
        """Update `member` to `described`, then the target, then reconcile the member; return the result."""
        group_id, topics = update.group.group_id, self._context.topics
        bump = False
        if described != member or described.member_id not in update.group.members:
            update.write(consumer.member_record(group_id, described))
            bump = (described.topics, described.expression) != (member.topics, member.expression)
        self._refresh(update, client, bump=bump)
        group = update.group
        updated = reconcile(
            group.members.get(described.member_id, described),
            target=group.target.get(described.member_id, {}),
            target_epoch=group.target_epoch,
            taken=group.owners.keys(),
            owned=owned,
            subscribed=topics.ids(group.topics_of(described)) if bump else None,
        )
        if updated != group.members.get(described.member_id):
            update.write(consumer.current_record(group_id, updated))
        return updated

    def _refresh(self, update: GroupUpdate, client: Client, *, bump: bool) -> None:
        """Update the group epoch and the target assignment if subscriptions or topics have changed.

        `bump` says that a member's subscription has changed.
        """
        topics = self._context.topics
        if bump or update.group.seen_topics != topics.version:
            self._resolve(update, client)
            group = update.group
            digest = topics.digest(group.subscribed())
            if bump or digest != group.metadata_hash:
                update.write(consumer.epoch_record(group.group_id, group.epoch + 1, digest))
            update.mark_topics_seen(topics)
        if update.group.epoch > update.group.target_epoch:
            self._assign(update)

    def _resolve(self, update: GroupUpdate, client: Client) -> None:
        """Update the topics that match the members' regular expressions.

        As in Kafka, these are topics that the client may describe whose request finds the expression, or the
        topics, changed.
        """
        group_id, subscribed, topics = update.group.group_id, update.group.expressions(), self._context.topics
        unchanged = update.group.seen_topics == topics.version
        for expression in sorted(subscribed):
            if unchanged and expression in update.group.resolved:
                continue
            names = frozenset(filter(client.may_describe, topics.matching(expression)))
            if update.group.resolved.get(expression) != names:
                now_ms = update.decision.now_ms
                update.write(consumer.expression_record(group_id, expression, names, topics.version, now_ms))
        for expression in sorted(update.group.resolved.keys() - subscribed):
            update.write(consumer.expression_record(group_id, expression, None, 0, 0))

    def _assign(self, update: GroupUpdate) -> None:
        group, topics = update.group, self._context.topics
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
        assignor = ASSIGNORS[group.preferred_assignor() or self._context.limits.consumer_assignors[0]]
        for member_id, assignment in assignor(members, partitions).items():
            if group.target.get(member_id) != assignment:
                update.write(consumer.target_record(group.group_id, member_id, assignment))
        update.write(consumer.target_epoch_record(group.group_id, update.group.epoch))

    def leave_as_static_member(
        self, group: consumer.ConsumerGroup, member: consumer.ConsumerMember, decision: Decision
    ) -> None:
        """Mark a static member as temporarily absent; it keeps its partitions until its session times out."""
        away = replace(member, epoch=consumer.LEAVE_GROUP_STATIC_MEMBER_EPOCH, revoking={})
        decision.records.append(consumer.current_record(group.group_id, away))
        self._deadlines.clear(Timer(TimerKind.REVOCATION, group.group_id, member.member_id))

    def remove(self, group: consumer.ConsumerGroup, member_ids: Collection[str], decision: Decision) -> None:
        """Remove members and increment the group epoch; the next heartbeat computes a new target."""
        update = GroupUpdate(group, decision)
        for member_id in member_ids:
            update.write(*consumer.member_tombstones(group.group_id, member_id))
            self.cancel_timers(group.group_id, member_id)
        update.write(consumer.epoch_record(group.group_id, group.epoch + 1, group.metadata_hash))

    def restart_session(self, group_id: str, member: consumer.ConsumerMember, now_ms: int) -> None:
        own = self._context.timeouts.get(group_id, _DEFAULT_TIMEOUTS)
        session_ms = own.session_timeout_ms or self._context.limits.consumer_session_timeout_ms
        if member.classic is not None:
            session_ms = member.classic.session_timeout_ms
        self._deadlines.set(Timer(TimerKind.SESSION, group_id, member.member_id), now_ms + session_ms)

    def _schedule_revocation_timeout(
        self, group_id: str, member: consumer.ConsumerMember, now_ms: int, *, reset: bool = False
    ) -> None:
        timer = Timer(TimerKind.REVOCATION, group_id, member.member_id)
        if member.state is not consumer.MemberState.UNREVOKED:
            self._deadlines.clear(timer)
        elif reset or timer not in self._deadlines:
            self._deadlines.set(timer, now_ms + max(member.rebalance_timeout_ms, 0))

    def start(self, group: consumer.ConsumerGroup, now_ms: int) -> None:
        """Start a session timeout for every member of a group that was just loaded or upgraded."""
        for member in group.members.values():
            if member.classic is None:
                self._schedule_revocation_timeout(group.group_id, member, now_ms)
            self.restart_session(group.group_id, member, now_ms)

    def cancel_timers(self, group_id: str, member_id: str) -> None:
        for kind in (TimerKind.SESSION, TimerKind.REVOCATION, TimerKind.REJOIN, TimerKind.RESYNC):
            self._deadlines.clear(Timer(kind, group_id, member_id))


def _check_epoch(member: consumer.ConsumerMember, beat: Heartbeat) -> None:
    """Raise unless the request names the member's epoch, or the previous one after a lost response."""
    if beat.epoch == member.epoch:
        return
    is_behind = beat.epoch == member.previous_epoch < member.epoch  # and not temporarily absent
    if (
        not is_behind
        or beat.owned is None
        or any(
            not member.assigned.get(topic_id, frozenset()).issuperset(partitions)
            for topic_id, partitions in beat.owned.items()
        )
    ):
        raise errors.FencedMemberEpoch(
            f"member {member.member_id} is at epoch {member.epoch}, the request names {beat.epoch}: "
            "the member must give up its partitions and rejoin"
        )


def _refuse_blank(**values: str | None) -> None:
    for name, value in values.items():
        if value is not None and not value.strip():
            raise errors.InvalidGroupRequest(f"{name} cannot be empty")
