"""One step of a member towards its target: what it has to give up first, and what it gets then."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.coordinator.transitions import check_transition
from headrace.group.assignors import Assignment
from headrace.group.consumer import TRANSITIONS, ConsumerMember, MemberState
from headrace.group.errors import FencedMemberEpoch

Owned = Mapping[bytes, Collection[int]]
"""What a member says that it has."""

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
    """The member after one step; the same one if there is nothing to do, or it has to give up more first.

    `taken` is what any member has, and `owned` what this one says it has, if it says so at all. What it
    is to give up counts as its own until it says that it is not. `subscribed` are its topics, if they
    have just changed.
    """
    if member.is_reconciled(target_epoch):
        return member
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise FencedMemberEpoch(f"nobody knows how far {member.member_id} is: it has to join again")
    if member.state is MemberState.UNREVOKED and _has_any(member.revoking, owned):
        return member if subscribed is None else _without_others(member, subscribed)
    kept, revoked, added, waits = _compare(member, target, taken)
    if revoked and _has_any(revoked, owned):
        return _moved(member, member.epoch, MemberState.UNREVOKED, kept, revoked)
    for topic_id, partitions in added.items():
        kept[topic_id] = kept.get(topic_id, NOTHING) | partitions
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return _moved(member, target_epoch, state, kept, {})


def _without_others(member: ConsumerMember, subscribed: Collection[bytes]) -> ConsumerMember:
    """The member, told to give up at once what it does not subscribe to any more."""
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
    """What stays, what goes, what comes now, and whether more comes when others have let go of it."""
    kept, revoked, added = {}, {}, {}
    waits = False
    for topic_id in member.assigned.keys() | target.keys():
        has, shall = member.assigned.get(topic_id, NOTHING), target.get(topic_id, NOTHING)
        if has & shall:
            kept[topic_id] = has & shall
        if has - shall:
            revoked[topic_id] = has - shall
        given_up = member.revoking.get(topic_id, NOTHING)  # by itself, so it can have it back
        free = frozenset(
            partition
            for partition in shall - has
            if (topic_id, partition) not in taken or partition in given_up
        )
        waits = waits or len(free) < len(shall - has)
        if free:
            added[topic_id] = free
    return kept, revoked, added, waits


def _has_any(assignment: Assignment, owned: Owned | None) -> bool:
    """Whether the member still has some of it, as far as anybody knows."""
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
        # With the epoch before, a member that missed an answer is still believed.
        previous_epoch=member.epoch if epoch != member.epoch else member.previous_epoch,
        assigned=assigned,
        revoking=revoking,
    )
