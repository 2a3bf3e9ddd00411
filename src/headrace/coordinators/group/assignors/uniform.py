"""The uniform assignor: it balances the number of partitions per member and moves few of them.

This module assigns for members that all subscribe to the same topics, in linear time; `heterogeneous` for
members with different subscriptions.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from headrace.coordinators.group.assignors.common import Assignment, AssignorMember, retain_owned
from headrace.coordinators.group.assignors.heterogeneous import assign_heterogeneous


def assign_uniform(
    members: Mapping[str, AssignorMember], partitions: Mapping[bytes, int]
) -> dict[str, Assignment]:
    """Return an assignment for each member; balance takes precedence over stickiness."""
    member_ids = sorted(members)
    in_order = [members[member_id] for member_id in member_ids]
    alike = len({member.topics for member in in_order}) <= 1
    assign = _assign_homogeneous if alike else assign_heterogeneous
    return dict(zip(member_ids, assign(in_order, partitions), strict=True))


def _assign_homogeneous(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> Sequence[Assignment]:
    """Keep as many partitions as possible while no two members differ by more than one partition."""
    kept, free = retain_owned(members, partitions)
    quotas = _quotas([_size(mine) for mine in kept], total=sum(partitions[topic] for topic in free))
    for member, quota in enumerate(quotas):
        if _size(kept[member]) > quota:
            in_order = sorted(
                (topic, partition) for topic, held in kept[member].items() for partition in held
            )
            kept[member], surplus = _with({}, in_order[:quota]), in_order[quota:]
            for topic, partition in surplus:
                free[topic].add(partition)
    vacant = ((topic, partition) for topic in free for partition in sorted(free[topic]))
    return [
        _with(mine, islice(vacant, quota - _size(mine))) for mine, quota in zip(kept, quotas, strict=True)
    ]


def _quotas(sizes: Sequence[int], *, total: int) -> list[int]:
    """Return how many partitions each member gets; `sizes` are the current numbers.

    Members above the minimum get the remainder first: sizes 2, 4, 3, 0 become 2, 3, 2, 2, and only the
    last member gains partitions.
    """
    least, extra = divmod(total, max(len(sizes), 1))
    quotas = [least] * len(sizes)
    for index in sorted(range(len(sizes)), key=lambda index: sizes[index] <= least)[:extra]:
        quotas[index] += 1
    return quotas


def _size(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def _with(mine: Assignment, more: Iterable[tuple[bytes, int]]) -> dict[bytes, frozenset[int]]:
    grown = {topic: set(held) for topic, held in mine.items()}
    for topic, partition in more:
        grown.setdefault(topic, set()).add(partition)
    return {topic: frozenset(held) for topic, held in grown.items()}
