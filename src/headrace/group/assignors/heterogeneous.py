"""The uniform assignor for members that subscribe to different topics.

It first decides how many partitions of each topic every member is to have, and last which ones: that is how
a member keeps as many of its own as its numbers allow. The numbers start with what members may keep.

    hand out    what is nobody's goes to the least loaded subscribers
    level       the most loaded member gives to the least loaded that it has something for, again and again
    chain       from a member to another that it has nothing for, through members between the two

After the last step no assignment has smaller differences: were there one, a chain would lead towards it.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace

from headrace.group.assignors.chains import even_out
from headrace.group.assignors.common import Assignment, AssignorMember, keep
from headrace.group.assignors.numbers import Numbers


def assign_heterogeneous(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> Sequence[Assignment]:
    """An assignment for each member, as balanced as their subscriptions allow."""
    kept, free = keep(members, partitions)
    numbers = Numbers(members, kept)
    # A topic with many partitions for few subscribers leaves the least choice, so it chooses first.
    topics = sorted(free, key=lambda topic: _urgency(topic, partitions[topic], numbers))
    for topic in topics:
        for _ in free[topic]:
            numbers.add(topic, numbers.poorest(topic))
    level(numbers)
    even_out(numbers)
    return _choose(kept, free, numbers)


def _urgency(topic: bytes, count: int, numbers: Numbers) -> tuple[float, int, bytes]:
    subscribers = len(numbers.subscribers[topic])
    return -count / subscribers, subscribers, topic


def level(numbers: Numbers) -> None:
    """Let members give until none can give to one with two fewer, but for what opens up on the way.

    The most loaded first: who gives is then among those that have to, and what moves, moves once.
    """
    loads = numbers.loads
    enough = min(loads) + 1  # nobody who has no more than this can give
    richest = [(-load, member) for member, load in enumerate(loads) if load > enough]
    heapify(richest)
    while richest:
        negative_load, giver = richest[0]
        offers = [(numbers.poorest(topic), topic) for topic in numbers.owned_by(giver)]
        taker, topic = min(offers, key=lambda offer: (loads[offer[0]], offer))
        if loads[giver] < loads[taker] + 2:
            heappop(richest)
            continue
        numbers.move(topic, giver, taker)
        heapreplace(richest, (negative_load + 1, giver))


def _choose(
    kept: Sequence[dict[bytes, frozenset[int]]], free: Mapping[bytes, set[int]], numbers: Numbers
) -> Sequence[Assignment]:
    """Turn numbers into partitions: first its own, then what others have to give."""
    for member, mine in enumerate(kept):
        for topic, held in mine.items():
            quota = numbers.owners[topic].get(member, 0)
            if len(held) > quota:
                mine[topic] = frozenset(sorted(held)[:quota])
                free[topic].update(held - mine[topic])
    for topic, vacant in free.items():
        left = sorted(vacant, reverse=True)
        for member, quota in sorted(numbers.owners[topic].items()):
            held = kept[member].get(topic, frozenset())
            if quota > len(held):
                kept[member][topic] = held.union(left.pop() for _ in range(quota - len(held)))
    return [{topic: held for topic, held in mine.items() if held} for mine in kept]
