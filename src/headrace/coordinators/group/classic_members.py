"""Members of a consumer group that use the classic protocol, during an upgrade or a downgrade.

Such members use JoinGroup, SyncGroup, Heartbeat and LeaveGroup. They see a classic group whose generation
is the member's own epoch, which has no leader, and whose assignment the coordinator computes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from headrace.coordinators.deadlines import Deadlines
from headrace.coordinators.decision import Waiter
from headrace.coordinators.group.assignors import Assignment
from headrace.coordinators.group.classic import CONSUMER
from headrace.coordinators.group.classic_protocol import Join, Leaving, Sync
from headrace.coordinators.group.consumer import ClassicMetadata, ConsumerGroup, ConsumerMember, MemberState
from headrace.coordinators.group.consumer_protocol import ConsumerProtocolMachine, GroupUpdate
from headrace.coordinators.group.decision import Decision, Joined, Synced, Timer, TimerKind
from headrace.coordinators.group.errors import (
    GroupError,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.coordinators.topics import Topics
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_subscription,
    encode_assignment,
)
from headrace.protocol.errors import ProtocolError
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition


class ClassicMembers:
    """Serves the classic protocol APIs to members of consumer groups."""

    def __init__(
        self,
        machine: ConsumerProtocolMachine,
        deadlines: Deadlines[Timer],
        new_member_id: Callable[[str], str],
    ) -> None:
        self._machine = machine
        self._deadlines = deadlines
        self._new_member_id = new_member_id

    def join(
        self, group: ConsumerGroup, join: Join, topics: Topics, waiter: Waiter, decision: Decision
    ) -> GroupUpdate:
        """Add or update a member. The reply is sent at once: no other member has to rejoin."""
        if join.protocol_type != CONSUMER or not group.supports_classic(join.protocols):
            raise InconsistentProtocol(
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
        owned = owned_partitions(subscription, topics)
        updated = self._machine.advance(update, member, described, topics, owned, client=join.client)
        group_id, member_id = group.group_id, updated.member_id
        self._deadlines.clear(Timer(TimerKind.REJOIN, group_id, member_id))
        self._deadlines.clear(Timer(TimerKind.REVOCATION, group_id, member_id))
        self._machine.schedule_session_timeout(group_id, member_id, join.session_timeout_ms, decision.now_ms)
        self._deadlines.set(
            Timer(TimerKind.RESYNC, group_id, member_id), decision.now_ms + join.rebalance_timeout_ms
        )
        protocol = join.protocols[0][0]
        decision.replies.append((waiter, Joined(member_id, updated.epoch, CONSUMER, protocol, leader="")))
        return update

    def _find_member(self, update: GroupUpdate, join: Join) -> ConsumerMember:
        group = update.group
        if join.instance_id is not None and join.instance_id in group.instances:
            if join.member_id:
                return group.member(join.member_id, join.instance_id)
            holder = group.members[group.instances[join.instance_id]]
            return self._machine.replace_static_member(update, holder, self._new_member_id(join.instance_id))
        if join.instance_id is not None and join.member_id:
            raise UnknownMember(f"group {group.group_id!r} has no static member {join.instance_id!r}")
        if join.member_id in group.members:
            return group.members[join.member_id]
        new_id = join.member_id or self._new_member_id(join.instance_id or join.client.client_id)
        member = self._machine.new_member(group, new_id)
        if not join.member_id and join.instance_id is None and join.requires_known_member_id:
            raise MemberIdRequired(new_id)
        return member

    def sync(
        self, group: ConsumerGroup, sync: Sync, topics: Topics, waiter: Waiter, decision: Decision
    ) -> None:
        """Reply with the member's current assignment."""
        member, classic = self._check(group, sync.member_id, sync.instance_id, sync.generation)
        protocol, metadata = classic.protocols[0]
        if sync.protocol_type not in {None, CONSUMER} or sync.protocol_name not in {None, protocol}:
            raise InconsistentProtocol(
                f"member {member.member_id} joined with protocol {protocol!r}, not {sync.protocol_name!r}"
            )
        if group.classic_epoch() > member.epoch and member.state is not MemberState.UNREVOKED:
            self._schedule_rejoin_timeout(group, member, decision.now_ms)
            raise RebalanceInProgress(
                f"member {member.member_id} is at epoch {member.epoch}, "
                f"group {group.group_id!r} is at {group.epoch}: rejoin"
            )
        self._deadlines.clear(Timer(TimerKind.RESYNC, group.group_id, member.member_id))
        self._machine.schedule_session_timeout(
            group.group_id, member.member_id, classic.session_timeout_ms, decision.now_ms
        )
        assignment = write_assignment(member.assigned, topics, like=metadata)
        decision.replies.append((waiter, Synced(sync.protocol_type, sync.protocol_name, assignment)))

    def heartbeat(
        self, group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int, now_ms: int
    ) -> None:
        """Extend the member's session; raise RebalanceInProgress if it has to rejoin to reconcile."""
        member, classic = self._check(group, member_id, instance_id, generation)
        self._machine.schedule_session_timeout(group.group_id, member_id, classic.session_timeout_ms, now_ms)
        can_have_more = member.state is MemberState.UNRELEASED and not group.waits_for_others(member)
        behind = member.epoch < group.classic_epoch()
        if behind or member.state is MemberState.UNREVOKED or can_have_more:
            self._schedule_rejoin_timeout(group, member, now_ms)
            raise RebalanceInProgress(f"member {member_id} of group {group.group_id!r} has to rejoin")

    def leave(
        self, group: ConsumerGroup, leaving: Sequence[Leaving], decision: Decision
    ) -> list[GroupError | None]:
        """Remove classic members; return an error or None for each."""
        results: list[GroupError | None] = []
        removed: list[str] = []
        for each in leaving:
            member_id = each.member_id or group.instances.get(each.instance_id or "", "")
            try:
                self._classic(group.member(member_id, each.instance_id))
            except GroupError as error:
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
        classic = self._classic(member)
        if member.epoch != generation:
            raise IllegalGeneration(
                f"member {member_id} is at epoch {member.epoch}, the request names {generation}"
            )
        return member, classic

    def _classic(self, member: ConsumerMember) -> ClassicMetadata:
        if member.classic is None:
            raise UnknownMember(f"member {member.member_id} does not use the classic protocol")
        return member.classic

    def _schedule_rejoin_timeout(self, group: ConsumerGroup, member: ConsumerMember, now_ms: int) -> None:
        timer = Timer(TimerKind.REJOIN, group.group_id, member.member_id)
        if timer not in self._deadlines:
            self._deadlines.set(timer, now_ms + max(member.rebalance_timeout_ms, 0))


# -- subscriptions and assignments in the format of classic consumers --------------------------


def read_subscription(protocols: Sequence[tuple[str, bytes]]) -> ConsumerProtocolSubscription:
    """Return the member's subscription from its first protocol; all its protocols carry the same one."""
    try:
        return decode_subscription(protocols[0][1])
    except ProtocolError as error:
        raise InconsistentProtocol(f"the member's subscription cannot be decoded: {error}") from error


def owned_partitions(
    subscription: ConsumerProtocolSubscription, topics: Topics
) -> Mapping[bytes, frozenset[int]]:
    return {
        topics.by_name[each.topic].topic_id: frozenset(each.partitions)
        for each in subscription.owned_partitions
        if each.topic in topics.by_name
    }


def write_assignment(assigned: Assignment, topics: Topics, *, like: bytes) -> bytes:
    """Return the encoded assignment, in the version of the subscription `like`."""
    newest = ConsumerProtocolAssignment.__codec__.versions[-1]
    version = max(0, min(int.from_bytes(like[:2], "big", signed=True), newest))
    partitions = [
        TopicPartition(topic=topics.names[topic_id], partitions=sorted(numbers))
        for topic_id, numbers in sorted(assigned.items())
        if topic_id in topics.names
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=partitions, user_data=None)
    return encode_assignment(message, version)
