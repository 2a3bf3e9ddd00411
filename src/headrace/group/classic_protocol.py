"""The classic protocol: how JoinGroup, SyncGroup, Heartbeat, LeaveGroup and time move a classic group.

A group is written down when it is stable, or empty, and changes so by records alone. On its way to the next
generation (who has joined, who waits, until when) it changes here, at once: that is worth nothing after a
crash, from which a group comes back as it was last written down.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from headrace.coordinator.deadlines import Deadlines
from headrace.coordinator.decision import Waiter
from headrace.coordinator.errors import CoordinatorError
from headrace.group.classic import ClassicGroup, ClassicMember, Protocols, State
from headrace.group.decision import Answer, Client, Decision, Joined, Synced, Timed, Timer
from headrace.group.errors import (
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
from headrace.group.limits import GroupLimits

_MAX_PENDING = 10_000  # members that were given an id and have not come back with it
_MAX_PROTOCOLS = 128  # of one member; real ones have a handful


class Join(NamedTuple):
    """A JoinGroup."""

    group_id: str
    member_id: str
    instance_id: str | None
    client: Client
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    asks_for_id: bool  # a new member is told its id and joins with it: it came back, so it is alive
    may_skip_assignment: bool


class Sync(NamedTuple):
    """A SyncGroup; the leader's has the assignments."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]


class Leaving(NamedTuple):
    """One of the members that a LeaveGroup names."""

    member_id: str
    instance_id: str | None


class ClassicProtocolMachine:
    """Moves classic groups. It has no groups of its own, only their deadlines."""

    def __init__(
        self, limits: GroupLimits, deadlines: Deadlines[Timer], new_member_id: Callable[[str], str]
    ) -> None:
        self.limits = limits
        self._deadlines = deadlines
        self._new_member_id = new_member_id
        self._extendable: dict[str, int] = {}  # ms by which a group's first delay may still grow

    # -- join ----------------------------------------------------------------------------------

    def join(self, group: ClassicGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        """A member wants to be in the next generation; it is answered when that begins."""
        if not self._has_room(group, join.member_id):
            group.remove(join.member_id)
            raise GroupIsFull(f"group {group.group_id!r} has as many members as it may").of("")
        if len(join.protocols) > _MAX_PROTOCOLS or not group.supports(join.protocol_type, join.protocols):
            raise InconsistentProtocol(
                f"group {group.group_id!r} speaks {group.protocol_type}, "
                f"and nothing that all its members know is in {[name for name, _ in join.protocols]}"
            )
        if not join.member_id:
            self._join_new(group, join, waiter, decision)
        elif join.member_id in group.pending:
            if join.instance_id is not None:
                raise InvalidGroupRequest("a member with an instance id is never asked to join again")
            self._add(group, join, join.member_id, waiter, decision)
        else:
            self._join_again(group, join, waiter, decision)

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        member = group.members.get(member_id)
        if group.state is State.EMPTY:
            return True
        if group.state is State.PREPARING:
            return (member is not None and member.joining is not None) or group.joining < self.limits.max_size
        return member is not None or len(group.members) < self.limits.max_size

    def _join_new(self, group: ClassicGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        if join.instance_id is not None:
            member_id = self._new_member_id(join.instance_id)
            if join.instance_id in group.instances:
                self._replace(group, join, member_id, waiter, decision)
            else:
                self._add(group, join, member_id, waiter, decision)
            return
        member_id = self._new_member_id(join.client.client_id)
        if join.asks_for_id:
            if len(group.pending) >= _MAX_PENDING:
                raise GroupIsFull(
                    f"{_MAX_PENDING} members of group {group.group_id!r} are on their way already"
                )
            group.pending.add(member_id)
            self._expect(group, member_id, join.session_timeout_ms, decision.now_ms)
            decision.replies.append((waiter, MemberIdRequired(member_id)))
        else:
            self._add(group, join, member_id, waiter, decision)

    def _add(
        self,
        group: ClassicGroup,
        join: Join,
        member_id: str,
        waiter: Waiter,
        decision: Decision,
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
        if group.state is State.PREPARING:
            group.gained_member = True
        group.add(member, join.protocol_type)
        # A new member may be gone before it ever heartbeats; it is not waited for without end.
        self._expect(group, member_id, self.limits.new_member_join_timeout_ms, decision.now_ms)
        self._rebalance(group, decision)

    def _join_again(self, group: ClassicGroup, join: Join, waiter: Waiter, decision: Decision) -> None:
        member = group.check_member(join.member_id, join.instance_id)
        changed = list(member.protocols) != list(join.protocols)
        leads = group.leader == member.member_id
        if group.state is State.EMPTY:
            raise UnknownMember(f"group {group.group_id!r} is empty")
        if group.state is State.PREPARING or changed or (group.state is State.STABLE and leads):
            # A leader that joins a stable group again has seen something that changes the assignment.
            self._update(member, join, waiter, decision)
            self._rebalance(group, decision)
        else:
            shown = group.joined_members() if leads else ()
            decision.replies.append((waiter, self._joined(group, member)._replace(members=shown)))

    def _update(self, member: ClassicMember, join: Join, waiter: Waiter, decision: Decision) -> None:
        member.protocols = join.protocols
        member.session_timeout_ms = join.session_timeout_ms
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        if member.joining is not None:
            decision.replies.append((member.joining, RebalanceInProgress("the member has joined again")))
        member.joining = waiter

    def _replace(
        self, group: ClassicGroup, join: Join, new_id: str, waiter: Waiter, decision: Decision
    ) -> None:
        """A static member is back. In a stable group it gets its old place, and nobody else notices."""
        led_before, old_id = group.leader, group.instances[join.instance_id or ""]
        self._deadlines.clear(Timer(Timed.SESSION, group.group_id, old_id))
        member = group.replace_static(old_id, new_id)
        fenced = FencedInstance(f"instance {join.instance_id!r} is now member {new_id}").of(old_id)
        self._answer_all(member, fenced, decision)
        group.unsynced.discard(old_id)
        self._update(member, join, waiter, decision)
        self._expect(group, new_id, member.session_timeout_ms, decision.now_ms)
        if group.state is State.STABLE and group.choose_protocol() == group.protocol_name:
            assignments = {each.member_id: each.assignment for each in group.members.values()}
            decision.records.append(group.record(assignments, decision.now_ms))
            member.joining = None
            joined = self._joined(group, member)
            if join.may_skip_assignment:
                leads = group.leader == new_id
                shown = group.joined_members() if leads else ()
                joined = joined._replace(members=shown, skip_assignment=leads)
            else:
                # An old client that is told it leads would assign anew. So it is told that its former
                # self leads, which is nobody now.
                joined = joined._replace(leader=led_before or "")
            decision.replies.append((waiter, joined))
        elif group.state is State.COMPLETING:
            # The leader may have seen the old id already, and would assign to it.
            self._prepare(group, decision)
        else:
            self._rebalance(group, decision)

    # -- towards a generation ------------------------------------------------------------------

    def _rebalance(self, group: ClassicGroup, decision: Decision) -> None:
        if group.state is State.PREPARING:
            self._complete_if_all_joined(group, decision)
        else:
            self._prepare(group, decision)

    def _prepare(self, group: ClassicGroup, decision: Decision) -> None:
        """Wait for everybody to join, at most as long as the most patient member wants."""
        if group.state is State.COMPLETING:
            comes_anew = RebalanceInProgress(f"group {group.group_id!r} comes together anew")
            self._answer_syncing(group, comes_anew, decision)
        self._clear_sync(group)
        was_empty = group.state is State.EMPTY
        group.move_to(State.PREPARING)
        if was_empty:
            delay = self.limits.initial_rebalance_delay_ms
            self._extendable[group.group_id] = max(group.rebalance_timeout_ms - delay, 0)
            group.gained_member = False
            self._deadlines.set(Timer(Timed.JOIN, group.group_id), decision.now_ms + delay)
            if not delay:
                self.join_time_is_up(group, decision)
        elif group.all_have_joined:
            self._complete_join(group, decision)
        else:
            self._wait_for_joins(group, decision.now_ms)

    def _wait_for_joins(self, group: ClassicGroup, now_ms: int) -> None:
        self._deadlines.set(Timer(Timed.JOIN, group.group_id), now_ms + group.rebalance_timeout_ms)

    def _complete_if_all_joined(self, group: ClassicGroup, decision: Decision) -> None:
        # A new group keeps to its first delay even if everybody known is there: more are on their way.
        if group.group_id not in self._extendable and group.all_have_joined:
            self._complete_join(group, decision)

    def join_time_is_up(self, group: ClassicGroup, decision: Decision) -> None:
        """Go on with those who have joined; a new group waits on while more are joining."""
        if group.state is not State.PREPARING:
            return
        remaining = self._extendable.get(group.group_id, 0)
        if group.gained_member and remaining:
            group.gained_member = False
            delay = min(self.limits.initial_rebalance_delay_ms, remaining)
            self._extendable[group.group_id] = max(remaining - delay, 0)
            self._deadlines.set(Timer(Timed.JOIN, group.group_id), decision.now_ms + delay)
        else:
            self._complete_join(group, decision)

    def _complete_join(self, group: ClassicGroup, decision: Decision) -> None:
        self._extendable.pop(group.group_id, None)
        self._deadlines.clear(Timer(Timed.JOIN, group.group_id))
        for member in list(group.members.values()):
            if member.joining is None and member.instance_id is None:
                self._drop(group, member.member_id)
        if not group.members:
            group.leader = None
            decision.records.append(group.empty_record(decision.now_ms))
        elif not group.elect_joined_leader():
            self._wait_for_joins(group, decision.now_ms)  # only static members are left, and none is back yet
        else:
            group.begin_generation()
            self._answer_joining(group, decision)

    def _answer_joining(self, group: ClassicGroup, decision: Decision) -> None:
        for member in group.members.values():
            if member.joining is not None:
                shown = group.joined_members() if member.member_id == group.leader else ()
                decision.replies.append((member.joining, self._joined(group, member)._replace(members=shown)))
                member.joining = None
            member.is_new = False
            self._expect(group, member.member_id, member.session_timeout_ms, decision.now_ms)
        group.unsynced = set(group.members)
        self._deadlines.set(Timer(Timed.SYNC, group.group_id), decision.now_ms + group.rebalance_timeout_ms)

    def _joined(self, group: ClassicGroup, member: ClassicMember) -> Joined:
        return Joined(
            member_id=member.member_id,
            generation=group.generation,
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            leader=group.leader or "",
        )

    # -- sync ----------------------------------------------------------------------------------

    def sync(self, group: ClassicGroup, sync: Sync, waiter: Waiter, decision: Decision) -> None:
        """A member wants its assignment; all get theirs when the leader's sync is written down."""
        member = group.check_member(sync.member_id, sync.instance_id)
        group.check_generation(sync.generation)
        for said, settled in (
            (sync.protocol_type, group.protocol_type),
            (sync.protocol_name, group.protocol_name),
        ):
            if said is not None and settled is not None and said != settled:
                raise InconsistentProtocol(f"group {group.group_id!r} speaks {settled!r}, not {said!r}")
        if group.state is State.EMPTY:
            raise UnknownMember(f"group {group.group_id!r} is empty")
        if group.state is State.PREPARING:
            raise RebalanceInProgress(f"group {group.group_id!r} comes together anew")
        leads = member.member_id == group.leader
        if group.state is State.COMPLETING and leads:
            self._check_size(group, sync.assignments)
        self._has_synced(group, member.member_id)
        if group.state is State.STABLE:
            synced = Synced(group.protocol_type, group.protocol_name, member.assignment)
            decision.replies.append((waiter, synced))
            self._expect(group, member.member_id, member.session_timeout_ms, decision.now_ms)
            return
        if member.syncing is not None:
            decision.replies.append((member.syncing, RebalanceInProgress("the member has synced again")))
        member.syncing = waiter
        if leads:
            self._settle(group, sync.assignments, decision)

    def _check_size(self, group: ClassicGroup, assignments: Mapping[str, bytes]) -> None:
        size = sum(
            len(member.metadata(group.protocol_name)) + len(assignments.get(member.member_id, b""))
            for member in group.members.values()
        )
        if size > self.limits.max_record_bytes:
            raise GroupTooLarge(f"{size} bytes of subscriptions and assignments are too much to remember")

    def _settle(self, group: ClassicGroup, assignments: Mapping[str, bytes], decision: Decision) -> None:
        decision.records.append(group.record(dict(assignments), decision.now_ms))
        for member in group.members.values():
            if member.syncing is not None:
                given = assignments.get(member.member_id, b"")
                synced = Synced(group.protocol_type, group.protocol_name, given)
                decision.replies.append((member.syncing, synced))
                member.syncing = None
                self._expect(group, member.member_id, member.session_timeout_ms, decision.now_ms)

    def _has_synced(self, group: ClassicGroup, member_id: str) -> None:
        group.unsynced.discard(member_id)
        if not group.unsynced:
            self._deadlines.clear(Timer(Timed.SYNC, group.group_id))

    def _clear_sync(self, group: ClassicGroup) -> None:
        group.unsynced.clear()
        self._deadlines.clear(Timer(Timed.SYNC, group.group_id))

    def sync_time_is_up(self, group: ClassicGroup, decision: Decision) -> None:
        """Members that were told of the generation and did not sync in it are gone."""
        if group.state in {State.COMPLETING, State.STABLE} and group.unsynced:
            for member_id in sorted(group.unsynced):
                self._drop(group, member_id)
            self._prepare(group, decision)

    # -- heartbeats ----------------------------------------------------------------------------

    def heartbeat(
        self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """The member is alive; RebalanceInProgress tells it to join again."""
        member = group.check_member(member_id, instance_id)
        group.check_generation(generation)
        if group.state is State.EMPTY:
            raise UnknownMember(f"group {group.group_id!r} is empty")
        self._expect(group, member_id, member.session_timeout_ms, now_ms)
        if group.state is State.PREPARING:
            raise RebalanceInProgress(f"group {group.group_id!r} comes together anew")

    def keep_alive(self, group: ClassicGroup, member_id: str, now_ms: int) -> None:
        """A commit counts as a heartbeat."""
        member = group.members.get(member_id)
        if member is not None and group.state in {State.STABLE, State.PREPARING}:
            self._expect(group, member_id, member.session_timeout_ms, now_ms)

    def session_is_over(self, group: ClassicGroup, member_id: str, decision: Decision) -> None:
        """The member was silent for too long. While it waits for an answer of ours, it need not speak."""
        if member_id in group.pending:
            group.remove(member_id)
            if group.state is State.PREPARING:
                self._complete_if_all_joined(group, decision)
            return
        member = group.members.get(member_id)
        if member is None or (member.is_waiting and not member.is_new):
            return
        self._answer_all(member, UnknownMember(f"member {member_id} was silent for too long"), decision)
        self._drop(group, member_id)
        self._after_departure(group, decision)

    # -- leaving -------------------------------------------------------------------------------

    def leave(
        self, group: ClassicGroup, leaving: Sequence[Leaving], decision: Decision
    ) -> list[GroupError | None]:
        """Remove members at their own wish, or static ones at somebody else's; say how each went."""
        results: list[GroupError | None] = []
        for each in leaving:
            try:
                self._leave(group, each, decision)
            except GroupError as error:
                results.append(error)
            else:
                results.append(None)
        if None in results:
            self._after_departure(group, decision)
        return results

    def _leave(self, group: ClassicGroup, leaving: Leaving, decision: Decision) -> None:
        member_id = leaving.member_id
        if not member_id:
            member_id = group.instances.get(leaving.instance_id or "", "")
        elif member_id in group.pending:
            self._drop(group, member_id)
            return
        else:
            group.check_member(member_id, leaving.instance_id)
        if member_id not in group.members:
            raise UnknownMember(f"group {group.group_id!r} has no such member")
        self._answer_all(group.members[member_id], UnknownMember("the member has left").of(""), decision)
        self._drop(group, member_id)

    def _after_departure(self, group: ClassicGroup, decision: Decision) -> None:
        if group.state in {State.STABLE, State.COMPLETING}:
            self._prepare(group, decision)
        elif group.state is State.PREPARING:
            self._complete_if_all_joined(group, decision)

    # -- common --------------------------------------------------------------------------------

    def restart(self, group: ClassicGroup, now_ms: int) -> None:
        """The group was read from its records: give every member a session's time to be heard from."""
        for member in group.members.values():
            self._expect(group, member.member_id, member.session_timeout_ms, now_ms)

    def begin_rebalance(self, group: ClassicGroup, decision: Decision) -> None:
        """Have everybody join again, for a reason from outside."""
        self._prepare(group, decision)

    def dismiss(self, group: ClassicGroup, why: CoordinatorError, decision: Decision) -> None:
        """The group ends: whoever waits is told, and nothing of it is due any more."""
        for member in list(group.members.values()):
            self._answer_all(member, why, decision)
            self._deadlines.clear(Timer(Timed.SESSION, group.group_id, member.member_id))
        for member_id in group.pending:
            self._deadlines.clear(Timer(Timed.SESSION, group.group_id, member_id))
        self._deadlines.clear(Timer(Timed.JOIN, group.group_id))
        self._deadlines.clear(Timer(Timed.SYNC, group.group_id))
        self._extendable.pop(group.group_id, None)

    def _expect(self, group: ClassicGroup, member_id: str, within_ms: int, now_ms: int) -> None:
        self._deadlines.set(Timer(Timed.SESSION, group.group_id, member_id), now_ms + within_ms)

    def _drop(self, group: ClassicGroup, member_id: str) -> None:
        group.remove(member_id)
        self._deadlines.clear(Timer(Timed.SESSION, group.group_id, member_id))

    def _answer_all(self, member: ClassicMember, answer: Answer, decision: Decision) -> None:
        for waiter in (member.joining, member.syncing):
            if waiter is not None:
                decision.replies.append((waiter, answer))
        member.joining = member.syncing = None

    def _answer_syncing(self, group: ClassicGroup, answer: Answer, decision: Decision) -> None:
        for member in group.members.values():
            if member.syncing is not None:
                decision.replies.append((member.syncing, answer))
                member.syncing = None
                self._expect(group, member.member_id, member.session_timeout_ms, decision.now_ms)
