"""Reconciliation of a member with its target assignment: first revocation, then new partitions."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.coordinators.decision import check_transition
from headrace.coordinators.group.assignors import Assignment
from headrace.coordinators.group.consumer import TRANSITIONS, ConsumerMember, MemberState
from headrace.coordinators.group.errors import FencedMemberEpoch

Owned = Mapping[bytes, Collection[int]]
"""The partitions that a member owns according to its heartbeat."""

NOTHING: frozenset[int] = frozenset()


def reconcile(
    member: ConsumerMember,
    *,
    target: Assignment,
    target_epoch: int,
    taken: Collection[tuple[bytes, int]],
    owned: Owned | None,
    subscribed: Collection[bytes] | None = None,
) -> ConsumerMember:
    """Return the member after one step; the same object if it is reconciled or still has to revoke.

    `taken` are the partitions that any member owns. `owned` are those that this member reports, or None.
    A partition to revoke counts as owned until the member reports that it is not. `subscribed` are the
    member's topics if its subscription has just changed.
    """
    if member.is_reconciled(target_epoch):
        return member
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise FencedMemberEpoch(f"the state of member {member.member_id} is unknown: rejoin")
    if member.state is MemberState.UNREVOKED and _has_any(member.revoking, owned):
        return member if subscribed is None else _without_unsubscribed(member, subscribed)
    kept, revoked, added, waits = _compare(member, target, taken)
    if revoked and _has_any(revoked, owned):
        return _moved(member, member.epoch, MemberState.UNREVOKED, kept, revoked)
    for topic_id, partitions in added.items():
        kept[topic_id] = kept.get(topic_id, NOTHING) | partitions
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return _moved(member, target_epoch, state, kept, {})


def _without_unsubscribed(member: ConsumerMember, subscribed: Collection[bytes]) -> ConsumerMember:
    """Return the member with all partitions of unsubscribed topics to revoke."""
    dropped = {topic_id: held for topic_id, held in member.assigned.items() if topic_id not in subscribed}
    if not dropped:
        return member
    kept = {topic_id: held for topic_id, held in member.assigned.items() if topic_id in subscribed}
    for topic_id, held in member.revoking.items():
        dropped[topic_id] = dropped.get(topic_id, NOTHING) | held
    return _moved(member, member.epoch, MemberState.UNREVOKED, kept, dropped)


def _compare(
    member: ConsumerMember, target: Assignment, taken: Collection[tuple[bytes, int]]
) -> tuple[dict[bytes, frozenset[int]], dict[bytes, frozenset[int]], dict[bytes, frozenset[int]], bool]:
    """Return the kept, revoked and added partitions, and whether the member waits for more of them."""
    kept, revoked, added = {}, {}, {}
    waits = False
    for topic_id in member.assigned.keys() | target.keys():
        current, wanted = member.assigned.get(topic_id, NOTHING), target.get(topic_id, NOTHING)
        if current & wanted:
            kept[topic_id] = current & wanted
        if current - wanted:
            revoked[topic_id] = current - wanted
        revoking = member.revoking.get(topic_id, NOTHING)  # owned by this member, so it can keep them
        free = frozenset(
            partition
            for partition in wanted - current
            if (topic_id, partition) not in taken or partition in revoking
        )
        waits = waits or len(free) < len(wanted - current)
        if free:
            added[topic_id] = free
    return kept, revoked, added, waits


def _has_any(assignment: Assignment, owned: Owned | None) -> bool:
    """Return whether the member may still own a partition of `assignment`."""
    if owned is None:
        return True
    return any(not partitions.isdisjoint(owned.get(topic, ())) for topic, partitions in assignment.items())


def _moved(
    member: ConsumerMember, epoch: int, state: MemberState, assigned: Assignment, revoking: Assignment
) -> ConsumerMember:
    check_transition(TRANSITIONS, member.state, state, f"member {member.member_id}")
    return replace(
        member,
        state=state,
        epoch=epoch,
        # A member that missed our last response is accepted with its previous epoch.
        previous_epoch=member.epoch if epoch != member.epoch else member.previous_epoch,
        assigned=assigned,
        revoking=revoking,
    )
