"""The classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup and deadlines of a classic group.

Only stable and empty groups are written to the log, and only records change that state. The progress of a
rebalance (joined members, waiting requests, deadlines) is changed here directly. It is not durable: after
a failover the group has the state of its last record.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from headrace.coordinators.decision import Waiter
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.classic import ClassicGroup, ClassicMember, ClassicState
from headrace.coordinators.group.decision import (
    Answer,
    Decision,
    Join,
    Joined,
    JoinedMember,
    Leaving,
    Sync,
    Synced,
    Timer,
    TimerKind,
)
from headrace.coordinators.group.errors import (
    FencedInstance,
    GroupError,
    GroupIsFull,
    GroupTooLarge,
    InconsistentProtocol,
    InvalidGroupRequest,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.coordinators.group.kinds import GroupContext, Left

_MAX_PENDING = 10_000  # members with a MEMBER_ID_REQUIRED response that have not rejoined
_MAX_PROTOCOLS = 128  # of one member; clients send a handful


class ClassicGroupKind:
    """Decides the transitions of classic groups. It keeps their timers, but no groups."""

    group_type: ClassVar[type[Any]] = ClassicGroup

    def __init__(self, context: GroupContext) -> None:
        self._context = context
        self._deadlines = context.deadlines
        self._remaining_delay_ms: dict[str, int] = {}  # how far a group's initial delay may still be extended

    def join(self, group: ClassicGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        """Let a member join the next generation; the reply is sent when that generation begins."""
        if not self._has_room(group, join.member_id):
            group.remove(join.member_id)
            max_size = self._context.limits.max_size
            raise GroupIsFull(f"group {group.group_id!r} already has {max_size} members").of("")
        if len(join.protocols) > _MAX_PROTOCOLS or not group.supports(join.protocol_type, join.protocols):
            raise InconsistentProtocol(
                f"the members of group {group.group_id!r} (type {group.protocol_type!r}) have no protocol in "
                f"common with {[name for name, _ in join.protocols]} (type {join.protocol_type!r})"
            )
        if not join.member_id:
            self._join_new(group, join, waiter, decision)
        elif join.member_id in group.pending:
            if join.instance_id is not None:
                raise InvalidGroupRequest(
                    f"member {join.member_id} was not static before and cannot rejoin as {join.instance_id!r}"
                )
            self._add(group, join, join.member_id, waiter, decision)
        else:
            member = group.check_member(join.member_id, join.instance_id)
            changed = list(member.protocols) != list(join.protocols)
            leads = group.leader == member.member_id
            if group.state is ClassicState.EMPTY:
                raise UnknownMember(f"group {group.group_id!r} is empty")
            if (
                group.state is ClassicState.PREPARING
                or changed
                or (group.state is ClassicState.STABLE and leads)
            ):
                # A leader rejoins a stable group when the assignment has to change, e.g. for new partitions.
                self._update(member, join, waiter, decision)
                self.rebalance(group, decision)
            else:
                decision.replies.append((waiter, self._joined(group, member)))

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        member, max_size = group.members.get(member_id), self._context.limits.max_size
        if group.state is ClassicState.EMPTY:
            return True
        if group.state is ClassicState.PREPARING:
            joining = sum(other.joining is not None for other in group.members.values())
            return (member is not None and member.joining is not None) or joining < max_size
        return member is not None or len(group.members) < max_size

    def _join_new(self, group: ClassicGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        if join.instance_id is not None:
            member_id = self._context.new_member_id(join.instance_id)
            if join.instance_id in group.instances:
                self._replace(group, join, member_id, waiter, decision)
            else:
                self._add(group, join, member_id, waiter, decision)
            return
        member_id = self._context.new_member_id(join.client.client_id)
        if join.requires_known_member_id:
            if len(group.pending) >= _MAX_PENDING:
                raise GroupIsFull(
                    f"{_MAX_PENDING} new members of group {group.group_id!r} have not rejoined yet"
                )
            group.pending.add(member_id)
            timer = Timer(TimerKind.SESSION, group.group_id, member_id)
            self._deadlines.set(timer, decision.now_ms + join.session_timeout_ms)
            decision.replies.append((waiter, MemberIdRequired(member_id)))
        else:
            self._add(group, join, member_id, waiter, decision)

    def _add(
        self, group: ClassicGroup, join: Join, member_id: str, waiter: Waiter, decision: Decision
    ) -> None:
        member = ClassicMember(
            member_id=member_id,
            instance_id=join.instance_id,
            client_id=join.client.client_id,
            client_host=join.client.host,
            session_timeout_ms=join.session_timeout_ms,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            protocols=join.protocols,
            joining=waiter,
            is_new=True,
        )
        if group.state is ClassicState.PREPARING:
            group.gained_member = True
        group.add(member, join.protocol_type)
        # A new member may fail before its first heartbeat; this timeout bounds the wait for it.
        within_ms = self._context.limits.new_member_join_timeout_ms
        self._deadlines.set(Timer(TimerKind.SESSION, group.group_id, member_id), decision.now_ms + within_ms)
        self.rebalance(group, decision)

    def _update(self, member: ClassicMember, join: Join, waiter: Waiter, decision: Decision) -> None:
        member.protocols = join.protocols
        member.session_timeout_ms = join.session_timeout_ms
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        if member.joining is not None:
            decision.replies.append(
                (member.joining, RebalanceInProgress("a later JoinGroup of the member has replaced this one"))
            )
        member.joining = waiter

    def _replace(
        self, group: ClassicGroup, join: Join, new_id: str, waiter: Waiter, decision: Decision
    ) -> None:
        """Let a static member rejoin with a new member id. A stable group does not rebalance."""
        led_before, old_id = group.leader, group.instances[join.instance_id or ""]
        self._deadlines.clear(Timer(TimerKind.SESSION, group.group_id, old_id))
        member = group.replace_static(old_id, new_id)
        fenced = FencedInstance(f"instance id {join.instance_id!r} now belongs to {new_id}").of(old_id)
        self._answer_all(member, fenced, decision)
        group.unsynced.discard(old_id)
        self._update(member, join, waiter, decision)
        self._restart_session(group, member, decision.now_ms)
        if group.state is ClassicState.STABLE and group.choose_protocol() == group.protocol_name:
            assignments = {other.member_id: other.assignment for other in group.members.values()}
            decision.records.append(group.record(assignments, decision.now_ms))
            member.joining = None
            joined = self._joined(group, member)
            if join.supports_skipping_assignment:
                joined = joined._replace(skip_assignment=group.leader == new_id)
            else:
                # An old client that leads would compute an assignment. So the response names the leader
                # before the replacement: for a static leader, its former member id.
                joined = joined._replace(leader=led_before or "", members=())
            decision.replies.append((waiter, joined))
        elif group.state is ClassicState.COMPLETING:
            # The leader may know the old member id already, and would assign partitions to it.
            self._prepare_rebalance(group, decision)
        else:
            self.rebalance(group, decision)

    def rebalance(self, group: ClassicGroup, decision: Decision) -> None:
        """Begin a rebalance, or continue the one in progress."""
        if group.state is ClassicState.PREPARING:
            self._complete_if_all_joined(group, decision)
        else:
            self._prepare_rebalance(group, decision)

    def _prepare_rebalance(self, group: ClassicGroup, decision: Decision) -> None:
        """Wait for all members to rejoin, at most for the longest rebalance timeout of a member."""
        if group.state is ClassicState.COMPLETING:
            rebalancing = RebalanceInProgress(f"group {group.group_id!r} is rebalancing: rejoin")
            for member in group.members.values():
                if member.syncing is not None:
                    decision.replies.append((member.syncing, rebalancing))
                    member.syncing = None
                    self._restart_session(group, member, decision.now_ms)
        group.unsynced.clear()
        self._deadlines.clear(Timer(TimerKind.SYNC, group.group_id))
        was_empty = group.state is ClassicState.EMPTY
        group.move_to(ClassicState.PREPARING)
        if was_empty:
            delay = self._context.limits.initial_rebalance_delay_ms
            self._remaining_delay_ms[group.group_id] = max(group.rebalance_timeout_ms - delay, 0)
            group.gained_member = False
            self._deadlines.set(Timer(TimerKind.JOIN, group.group_id), decision.now_ms + delay)
            if not delay:
                self._expire_join(group, decision)
        elif group.all_have_joined:
            self._complete_join(group, decision)
        else:
            self._wait_for_joins(group, decision.now_ms)

    def _wait_for_joins(self, group: ClassicGroup, now_ms: int) -> None:
        self._deadlines.set(Timer(TimerKind.JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)

    def _complete_if_all_joined(self, group: ClassicGroup, decision: Decision) -> None:
        # A new group waits for its whole initial delay, since more members are likely to join.
        if group.group_id not in self._remaining_delay_ms and group.all_have_joined:
            self._complete_join(group, decision)

    def _expire_join(self, group: ClassicGroup, decision: Decision) -> None:
        """Complete the join phase with the members that have joined, or extend a new group's delay."""
        if group.state is not ClassicState.PREPARING:
            return
        remaining = self._remaining_delay_ms.get(group.group_id, 0)
        if group.gained_member and remaining:
            group.gained_member = False
            delay = min(self._context.limits.initial_rebalance_delay_ms, remaining)
            self._remaining_delay_ms[group.group_id] = max(remaining - delay, 0)
            self._deadlines.set(Timer(TimerKind.JOIN, group.group_id), decision.now_ms + delay)
        else:
            self._complete_join(group, decision)

    def _complete_join(self, group: ClassicGroup, decision: Decision) -> None:
        self._remaining_delay_ms.pop(group.group_id, None)
        self._deadlines.clear(Timer(TimerKind.JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._remove_member(group, member.member_id)
        if not group.members:
            group.leader = None
            decision.records.append(group.empty_record(decision.now_ms))
        elif not group.elect_joined_leader():
            self._wait_for_joins(group, decision.now_ms)  # only static members remain, and none has rejoined
        else:
            group.begin_generation()
            for member in group.members.values():
                if member.joining is not None:
                    decision.replies.append((member.joining, self._joined(group, member)))
                    member.joining = None
                member.is_new = False
                self._restart_session(group, member, decision.now_ms)
            group.unsynced = set(group.members)
            timer = Timer(TimerKind.SYNC, group.group_id)
            self._deadlines.set(timer, decision.now_ms + group.rebalance_timeout_ms)

    def _joined(self, group: ClassicGroup, member: ClassicMember) -> Joined:
        members: Sequence[JoinedMember] = ()
        if group.leader == member.member_id:
            members = [
                JoinedMember(other.member_id, other.instance_id, other.metadata(group.protocol_name))
                for other in group.members.values()
            ]
        return Joined(
            member_id=member.member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader or "",
            members=members,
        )

    def sync(self, group: ClassicGroup, sync: Sync, waiter: Waiter, decision: Decision) -> None:
        """Reply with the member's assignment once the leader's SyncGroup is committed."""
        member = group.check_member(sync.member_id, sync.instance_id)
        group.check_generation(sync.generation)
        for requested, actual in (
            (sync.protocol_type, group.protocol_type),
            (sync.protocol_name, group.protocol_name),
        ):
            if requested is not None and actual is not None and requested != actual:
                raise InconsistentProtocol(f"group {group.group_id!r} uses {actual!r}, not {requested!r}")
        if group.state is ClassicState.EMPTY:
            raise UnknownMember(f"group {group.group_id!r} is empty")
        if group.state is ClassicState.PREPARING:
            raise RebalanceInProgress(f"group {group.group_id!r} is rebalancing: rejoin")
        leads = member.member_id == group.leader
        if group.state is ClassicState.COMPLETING and leads:
            self._check_size(group, sync.assignments)
        group.unsynced.discard(member.member_id)
        if not group.unsynced:
            self._deadlines.clear(Timer(TimerKind.SYNC, group.group_id))
        if group.state is ClassicState.STABLE:
            synced = Synced(group.protocol_type, group.protocol_name, member.assignment)
            decision.replies.append((waiter, synced))
            self._restart_session(group, member, decision.now_ms)
            return
        if member.syncing is not None:
            decision.replies.append(
                (member.syncing, RebalanceInProgress("a later SyncGroup of the member has replaced this one"))
            )
        member.syncing = waiter
        if leads:
            self._complete_sync(group, sync.assignments, decision)

    def _check_size(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        size = sum(
            len(member.metadata(group.protocol_name)) + len(assignments.get(member.member_id, b""))
            for member in group.members.values()
        )
        if size > self._context.limits.max_record_bytes:
            raise GroupTooLarge(
                f"group {group.group_id!r} has {size} bytes of subscriptions and assignments, "
                f"more than {self._context.limits.max_record_bytes}"
            )

    def _complete_sync(
        self, group: ClassicGroup, assignments: Mapping[str, bytes], decision: Decision
    ) -> None:
        decision.records.append(group.record(dict(assignments), decision.now_ms))
        for member in group.members.values():
            if member.syncing is not None:
                given = assignments.get(member.member_id, b"")
                synced = Synced(group.protocol_type, group.protocol_name, given)
                decision.replies.append((member.syncing, synced))
                member.syncing = None
                self._restart_session(group, member, decision.now_ms)

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        member = group.check_member(member_id, instance_id)
        group.check_generation(generation)
        if group.state is ClassicState.EMPTY:
            raise UnknownMember(f"group {group.group_id!r} is empty")
        self._restart_session(group, member, now_ms)
        if group.state is ClassicState.PREPARING:
            raise RebalanceInProgress(f"group {group.group_id!r} is rebalancing: rejoin")

    def committed(self, group: ClassicGroup, member_id: str, now_ms: int) -> None:
        """Extend the member's session after an OffsetCommit, which counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None and group.state in {ClassicState.STABLE, ClassicState.PREPARING}:
            self._restart_session(group, member, now_ms)

    def expire(self, group: ClassicGroup, timer: Timer, decision: Decision) -> None:
        """Act on a deadline of the group or of a member that has passed."""
        if timer.kind is TimerKind.SESSION:
            self._expire_session(group, timer.member_id, decision)
        elif timer.kind is TimerKind.JOIN:
            self._expire_join(group, decision)
        elif timer.kind is TimerKind.SYNC and group.state in {ClassicState.COMPLETING, ClassicState.STABLE}:
            late = sorted(group.unsynced)
            for member_id in late:
                self._remove_member(group, member_id)
            if late:
                self._prepare_rebalance(group, decision)

    def _expire_session(self, group: ClassicGroup, member_id: str, decision: Decision) -> None:
        """Remove a member whose session timeout has passed, unless it waits for a response of ours."""
        if member_id in group.pending:
            group.remove(member_id)
            if group.state is ClassicState.PREPARING:
                self._complete_if_all_joined(group, decision)
            return
        member = group.members.get(member_id)
        if member is None:
            return
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            return
        self._answer_all(member, UnknownMember(f"the session of member {member_id} has timed out"), decision)
        self._remove_member(group, member_id)
        self._rebalance_after_removal(group, decision)

    def leave(self, group: ClassicGroup, leaving: Sequence[Leaving], decision: Decision) -> Left:
        results: Left = []
        for member in leaving:
            try:
                self._leave(group, member, decision)
            except GroupError as error:
                results.append(error)
            else:
                results.append(None)
        if None in results:
            self._rebalance_after_removal(group, decision)
        return results

    def _leave(self, group: ClassicGroup, leaving: Leaving, decision: Decision) -> None:
        member_id = leaving.member_id
        if not member_id:
            member_id = group.instances.get(leaving.instance_id or "", "")
        elif member_id in group.pending:
            self._remove_member(group, member_id)
            return
        else:
            group.check_member(member_id, leaving.instance_id)
        if member_id not in group.members:
            raise UnknownMember(
                f"group {group.group_id!r} has no member {leaving.member_id or leaving.instance_id!r}"
            )
        self._answer_all(group.members[member_id], UnknownMember("the member has left").of(""), decision)
        self._remove_member(group, member_id)

    def _rebalance_after_removal(self, group: ClassicGroup, decision: Decision) -> None:
        if group.state in {ClassicState.STABLE, ClassicState.COMPLETING}:
            self._prepare_rebalance(group, decision)
        elif group.state is ClassicState.PREPARING:
            self._complete_if_all_joined(group, decision)

    def start(self, group: ClassicGroup, now_ms: int) -> None:
        for member in group.members.values():
            self._restart_session(group, member, now_ms)

    def stop(self, group: ClassicGroup, error: CoordinatorError, decision: Decision) -> None:
        for member in list(group.members.values()):
            self._answer_all(member, error, decision)
            self._deadlines.clear(Timer(TimerKind.SESSION, group.group_id, member.member_id))
        for member_id in group.pending:
            self._deadlines.clear(Timer(TimerKind.SESSION, group.group_id, member_id))
        self._deadlines.clear(Timer(TimerKind.JOIN, group.group_id))
        self._deadlines.clear(Timer(TimerKind.SYNC, group.group_id))
        self._remaining_delay_ms.pop(group.group_id, None)

    def _restart_session(self, group: ClassicGroup, member: ClassicMember, now_ms: int) -> None:
        timer = Timer(TimerKind.SESSION, group.group_id, member.member_id)
        self._deadlines.set(timer, now_ms + member.session_timeout_ms)

    def _remove_member(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self._deadlines.clear(Timer(TimerKind.SESSION, group.group_id, member_id))

    def _answer_all(self, member: ClassicMember, answer: Answer, decision: Decision) -> None:
        for waiter in (member.joining, member.syncing):
            if waiter is not None:
                decision.replies.append((waiter, answer))
        member.joining = member.syncing = None
