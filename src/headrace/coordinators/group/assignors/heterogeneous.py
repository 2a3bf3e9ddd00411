"""The uniform assignor for members that subscribe to different topics.

It first computes how many partitions of each topic every member gets, and then which ones, so that a member
keeps as many of its own as possible. The counts start with the partitions that members may keep.

    hand out            partitions without an owner go to the least loaded subscribers
    balance_directly    the most loaded member gives a partition to the least loaded eligible one, repeatedly
    balance_by_chains   a member gives a partition to another through members between the two

After the last step the balance is optimal: a better assignment would imply another chain.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from headrace.coordinators.group.assignors.chains import balance_by_chains
from headrace.coordinators.group.assignors.common import Assignment, AssignorMember, retain_owned
from headrace.coordinators.group.assignors.partition_counts import PartitionCounts


def assign_heterogeneous(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> Sequence[Assignment]:
    """Return an assignment for each member, as balanced as the subscriptions allow."""
    kept, free = retain_owned(members, partitions)
    counts = PartitionCounts(members, kept)
    # Topics with many partitions per subscriber come first, because they leave the least choice.
    topics = sorted(free, key=lambda topic: _urgency(topic, partitions[topic], counts))
    for topic in topics:
        for _ in free[topic]:
            counts.add(topic, counts.least_loaded(topic))
    balance_directly(counts)
    balance_by_chains(counts)
    return _choose(kept, free, counts)


def _urgency(topic: bytes, count: int, counts: PartitionCounts) -> tuple[float, int, bytes]:
    subscribers = len(counts.subscribers[topic])
    return -count / subscribers, subscribers, topic


def balance_directly(counts: PartitionCounts) -> None:
    """Move partitions between pairs of members until hardly any move improves the balance.

    The most loaded member gives first, so that no partition moves twice.
    """
    loads = counts.loads
    enough = min(loads) + 1  # a member with no more than this cannot give
    most_loaded = [(-load, member) for member, load in enumerate(loads) if load > enough]
    heapify(most_loaded)
    while most_loaded:
        negative_load, giver = most_loaded[0]
        offers = [(counts.least_loaded(topic), topic) for topic in counts.owned_by(giver)]
        taker, topic = min(offers, key=lambda offer: (loads[offer[0]], offer))
        if loads[giver] < loads[taker] + 2:
            heappop(most_loaded)
            continue
        counts.move(topic, giver, taker)
        heapreplace(most_loaded, (negative_load + 1, giver))


def _choose(
    kept: Sequence[dict[bytes, frozenset[int]]], free: Mapping[bytes, set[int]], counts: PartitionCounts
) -> Sequence[Assignment]:
    """Choose partitions by the counts: each member keeps its own first, then gets those without an owner."""
    for member, mine in enumerate(kept):
        for topic, held in mine.items():
            quota = counts.owners[topic].get(member, 0)
            if len(held) > quota:
                mine[topic] = frozenset(sorted(held)[:quota])
                free[topic].update(held - mine[topic])
    for topic, vacant in free.items():
        left = sorted(vacant, reverse=True)
        for member, quota in sorted(counts.owners[topic].items()):
            held = kept[member].get(topic, frozenset())
            if quota > len(held):
                kept[member][topic] = held.union(left.pop() for _ in range(quota - len(held)))
    return [{topic: held for topic, held in mine.items() if held} for mine in kept]
