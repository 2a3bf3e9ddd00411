"""One step of a member towards its target: what it has to give up first, and what it gets then."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from headrace.group.assignors import Assignment
from headrace.group.consumer import ConsumerMember, MemberState

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
) -> ConsumerMember:
    """The member after one step; the same one if there is nothing to do, or it has to give up more first.

    `taken` is what any member has, and `owned` what this one says it has, if it says so at all. What it
    is to give up counts as its own until it says that it is not.
    """
    if member.is_reconciled(target_epoch):
        return member
    epoch = member.epoch
    if member.state is MemberState.UNREVOKED:
        if _has_any(member.revoking, owned):
            return member
        epoch += 1
    kept, revoked, added, waits = _compare(member.assigned, target, taken)
    if revoked and _has_any(revoked, owned):
        return _moved(member, epoch, MemberState.UNREVOKED, kept, revoked)
    for topic_id, partitions in added.items():
        kept[topic_id] = kept.get(topic_id, NOTHING) | partitions
    state = MemberState.UNRELEASED if waits else MemberState.STABLE
    return _moved(member, target_epoch, state, kept, {})


def _compare(
    assigned: Assignment, target: Assignment, taken: Collection[tuple[bytes, int]]
) -> tuple[dict[bytes, frozenset[int]], dict[bytes, frozenset[int]], dict[bytes, frozenset[int]], bool]:
    """What stays, what goes, what comes now, and whether more comes when others have let go of it."""
    kept, revoked, added = {}, {}, {}
    waits = False
    for topic_id in assigned.keys() | target.keys():
        has, shall = assigned.get(topic_id, NOTHING), target.get(topic_id, NOTHING)
        if has & shall:
            kept[topic_id] = has & shall
        if has - shall:
            revoked[topic_id] = has - shall
        free = frozenset(partition for partition in shall - has if (topic_id, partition) not in taken)
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
    return replace(
        member,
        state=state,
        epoch=epoch,
        # With the epoch before, a member that missed an answer is still believed.
        previous_epoch=member.epoch if epoch != member.epoch else member.previous_epoch,
        assigned=assigned,
        revoking=revoking,
    )
