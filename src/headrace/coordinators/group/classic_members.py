"""Consumer groups as the classic protocol sees them, during an upgrade or a downgrade.

Classic members use JoinGroup, SyncGroup, Heartbeat and LeaveGroup. They see a classic group whose generation
is the member's own epoch, which has no leader, and whose assignment the coordinator computes. When all
members of a consumer group use the classic protocol, it becomes a classic group.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

from headrace.coordinators.decision import Waiter
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group import errors
from headrace.coordinators.group.classic import CONSUMER, ClassicGroup
from headrace.coordinators.group.classic_protocol import ClassicGroupKind
from headrace.coordinators.group.consumer import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerMember,
    MemberState,
    member_tombstones,
)
from headrace.coordinators.group.consumer_protocol import ConsumerProtocolMachine, GroupUpdate
from headrace.coordinators.group.decision import (
    Decision,
    Join,
    Joined,
    Leaving,
    Sync,
    Synced,
    Timer,
    TimerKind,
)
from headrace.coordinators.group.kinds import Group, GroupContext, Left
from headrace.coordinators.group.migration import downgrade, read_subscription, write_assignment


class ConsumerGroupKind:
    """Serves the classic protocol to members of consumer groups, and removes or downgrades what has expired.

    `groups` are all groups of the coordinator. `classic` has the groups that are downgraded.
    """

    group_type: ClassVar[type[Any]] = ConsumerGroup

    def __init__(
        self,
        context: GroupContext,
        machine: ConsumerProtocolMachine,
        classic: ClassicGroupKind,
        groups: Mapping[str, Group],
    ) -> None:
        self._context = context
        self._deadlines = context.deadlines
        self._machine = machine
        self._classic = classic
        self._groups = groups

    def join(self, group: ConsumerGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        """Add or update a member. The reply is sent at once: no other member has to rejoin."""
        if join.protocol_type != CONSUMER or not group.supports_classic(join.protocols):
            raise errors.InconsistentProtocol(
                f"the classic members of group {group.group_id!r} have no protocol of type {CONSUMER!r} "
                f"in common with {[name for name, _ in join.protocols]}"
            )
        subscription = read_subscription(join.protocols)
        update = GroupUpdate(group, decision)
        member = self._find_member(update, join)
        described = replace(
            member,
            instance_id=join.instance_id,
            rack_id=subscription.rack_id,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            topics=frozenset(subscription.topics),
            expression=None,
            assignor=None,
            client_id=join.client.client_id,
            client_host=join.client.host,
            classic=ClassicMetadata(join.session_timeout_ms, tuple(join.protocols)),
        )
        by_name = self._context.topics.by_name
        owned = {
            by_name[owned.topic].topic_id: frozenset(owned.partitions)
            for owned in subscription.owned_partitions
            if owned.topic in by_name
        }
        updated = self._machine.advance(update, member, described, owned, client=join.client)
        group_id, member_id = group.group_id, updated.member_id
        self._deadlines.clear(Timer(TimerKind.REJOIN, group_id, member_id))
        self._deadlines.clear(Timer(TimerKind.REVOCATION, group_id, member_id))
        self._machine.restart_session(group_id, updated, decision.now_ms)
        self._deadlines.set(
            Timer(TimerKind.RESYNC, group_id, member_id), decision.now_ms + join.rebalance_timeout_ms
        )
        protocol = join.protocols[0][0]
        decision.replies.append((waiter, Joined(member_id, updated.epoch, CONSUMER, protocol, leader="")))
        before, after = group.members.values(), update.group.members.values()
        if (
            any(other.classic is None for other in before)
            and all(other.classic is not None for other in after)
            and self._may_downgrade(len(after))
        ):
            # The last member with the consumer protocol was static, and has rejoined with the classic one.
            self._downgrade(update.group, decision)

    def _find_member(self, update: GroupUpdate, join: Join) -> ConsumerMember:
        group = update.group
        if join.instance_id is not None and join.instance_id in group.instances:
            if join.member_id:
                return group.member(join.member_id, join.instance_id)
            holder = group.members[group.instances[join.instance_id]]
            new_id = self._context.new_member_id(join.instance_id)
            return self._machine.replace_static_member(update, holder, new_id)
        if join.instance_id is not None and join.member_id:
            raise errors.UnknownMember(f"group {group.group_id!r} has no static member {join.instance_id!r}")
        if join.member_id in group.members:
            return group.members[join.member_id]
        new_id = join.member_id or self._context.new_member_id(join.instance_id or join.client.client_id)
        member = self._machine.new_member(group, new_id)
        if not join.member_id and join.instance_id is None and join.requires_known_member_id:
            raise errors.MemberIdRequired(new_id)
        return member

    def sync(self, group: ConsumerGroup, sync: Sync, waiter: Waiter, decision: Decision) -> None:
        member, classic = self._check(group, sync.member_id, sync.instance_id, sync.generation)
        protocol, metadata = classic.protocols[0]
        if sync.protocol_type not in {None, CONSUMER} or sync.protocol_name not in {None, protocol}:
            raise errors.InconsistentProtocol(
                f"member {member.member_id} joined with protocol {protocol!r}, not {sync.protocol_name!r}"
            )
        if group.classic_epoch() > member.epoch and member.state is not MemberState.UNREVOKED:
            self._schedule_rejoin_timeout(group, member, decision.now_ms)
            raise errors.RebalanceInProgress(
                f"member {member.member_id} is at epoch {member.epoch}, "
                f"group {group.group_id!r} is at {group.epoch}: rejoin"
            )
        self._deadlines.clear(Timer(TimerKind.RESYNC, group.group_id, member.member_id))
        self._machine.restart_session(group.group_id, member, decision.now_ms)
        assignment = write_assignment(member.assigned, self._context.topics, like=metadata)
        decision.replies.append((waiter, Synced(sync.protocol_type, sync.protocol_name, assignment)))

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Extend the member's session; raise RebalanceInProgress if it has to rejoin to reconcile."""
        member, _ = self._check(group, member_id, instance_id, generation)
        self._machine.restart_session(group.group_id, member, now_ms)
        can_have_more = member.state is MemberState.UNRELEASED and not group.waits_for_others(member)
        behind = member.epoch < group.classic_epoch()
        if behind or member.state is MemberState.UNREVOKED or can_have_more:
            self._schedule_rejoin_timeout(group, member, now_ms)
            raise errors.RebalanceInProgress(f"member {member_id} of group {group.group_id!r} has to rejoin")

    def leave(self, group: ConsumerGroup, leaving: Sequence[Leaving], decision: Decision) -> Left:
        results: Left = []
        removed: list[str] = []
        for member in leaving:
            member_id = member.member_id or group.instances.get(member.instance_id or "", "")
            try:
                _classic_metadata(group.member(member_id, member.instance_id))
            except errors.GroupError as error:
                results.append(error)
            else:
                results.append(None)
                removed.append(member_id)
        if removed:
            self._machine.remove(group, dict.fromkeys(removed), decision)
        return results

    def _check(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
    ) -> tuple[ConsumerMember, ClassicMetadata]:
        member = group.member(member_id, instance_id)
        classic = _classic_metadata(member)
        if member.epoch != generation:
            raise errors.IllegalGeneration(
                f"member {member_id} is at epoch {member.epoch}, the request names {generation}"
            )
        return member, classic

    def _schedule_rejoin_timeout(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        timer = Timer(TimerKind.REJOIN, group.group_id, member.member_id)
        if timer not in self._deadlines:
            self._deadlines.set(timer, now_ms + max(member.rebalance_timeout_ms, 0))

    def committed(self, group: ConsumerGroup, member_id: str, now_ms: int) -> None:
        """Do nothing: only heartbeats extend the sessions of members of consumer groups."""

    def expire(self, group: ConsumerGroup, timer: Timer, decision: Decision) -> None:
        """Remove a member that has missed any of its deadlines."""
        if timer.member_id in group.members:
            self.fence(group, timer.member_id, decision)

    def fence(self, group: ConsumerGroup, member_id: str, decision: Decision) -> None:
        """Remove a member; downgrade the group if only classic members remain."""
        others = [member for member in group.members.values() if member.member_id != member_id]
        member = group.members.get(member_id)
        if (
            member is None
            or member.classic is not None
            or any(other.classic is None for other in others)
            or not self._may_downgrade(len(others))
        ):
            self._machine.remove(group, [member_id], decision)
            return
        # The group epoch does not change: it becomes the generation, and the heartbeats of the remaining
        # members name it already.
        update = GroupUpdate(group, decision)
        update.write(*member_tombstones(group.group_id, member_id))
        self._machine.cancel_timers(group.group_id, member_id)
        self._downgrade(update.group, decision)
        decision.on_applied = partial(self._rebalance_downgraded, group.group_id, decision.now_ms)

    def _may_downgrade(self, members: int) -> bool:
        limits = self._context.limits
        return limits.may_downgrade and 0 < members <= limits.max_size

    def _downgrade(self, group: ConsumerGroup, decision: Decision) -> None:
        decision.records.extend(downgrade(group, self._context.topics, decision.now_ms))
        for member_id in group.members:
            self._deadlines.clear(Timer(TimerKind.REJOIN, group.group_id, member_id))
            self._deadlines.clear(Timer(TimerKind.RESYNC, group.group_id, member_id))

    def _rebalance_downgraded(self, group_id: str, now_ms: int) -> None:
        """Begin a rebalance: members may still own partitions that the target assigns to others."""
        group = self._groups[group_id]
        assert isinstance(group, ClassicGroup), f"{group_id!r} is a {group.type_name} group"
        self._classic.rebalance(group, Decision(now_ms))  # no member waits, so it has no replies

    def start(self, group: ConsumerGroup, now_ms: int) -> None:
        self._machine.start(group, now_ms)

    def stop(self, group: ConsumerGroup, error: CoordinatorError, decision: Decision) -> None:
        """Do nothing: no request of a consumer group waits for others."""


def _classic_metadata(member: ConsumerMember) -> ClassicMetadata:
    if member.classic is None:
        raise errors.UnknownMember(f"member {member.member_id} does not use the classic protocol")
    return member.classic
