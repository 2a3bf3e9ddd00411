"""The uniform assignor for members that subscribe to different topics.

It first computes how many partitions of each topic every member gets, and then which ones, so that a member
keeps as many of its own as possible. The counts start with the partitions that members may keep.

    hand out            partitions without an owner go to the least loaded subscribers
    balance_directly    the most loaded member gives a partition to the least loaded eligible one, repeatedly
    balance_by_chains   a member gives a partition to another through members between the two

Members 0 (topic A), 1 (A, B) and 2 (B) have 9, 10 and 11 partitions. No direct move improves the balance, yet
2 can give a partition of B to 1, and 1 one of A to 0. Each chain to a member with at least two partitions
fewer improves the balance; when no such chain is left, the balance is optimal.
"""

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from headrace.coordinators.group.assignors.common import Assignment, AssignorMember, retain_owned

# How many subscribers all searches together may visit, which takes a fraction of a second. Groups that need
# more have hundreds of overlapping subscriptions; their balance is good, but maybe not optimal.
MAX_VISITS = 2_000_000


class PartitionCounts:
    """Partition counts by topic and member. A member is identified by its index in `members`."""

    def __init__(self, members: Sequence[AssignorMember], kept: Sequence[Assignment]) -> None:
        self.loads = [0] * len(members)  # partitions per member
        self.subscriptions = [sorted(member.topics) for member in members]
        self.subscribers: dict[bytes, list[int]] = {}
        for member, topics in enumerate(self.subscriptions):
            for topic in topics:
                self.subscribers.setdefault(topic, []).append(member)
        # Partition counts by topic and owner; a member without partitions of the topic is absent.
        self.owners: dict[bytes, dict[int, int]] = {topic: {} for topic in self.subscribers}
        self._least_loaded: dict[bytes, list[tuple[int, int]]] = {}  # by topic, a heap of (load, subscriber)
        for member, mine in enumerate(kept):
            for topic, held in mine.items():
                self.owners[topic][member] = len(held)
                self.loads[member] += len(held)

    def add(self, topic: bytes, member: int) -> None:
        owners = self.owners[topic]
        owners[member] = owners.get(member, 0) + 1
        self.loads[member] += 1

    def move(self, topic: bytes, giver: int, taker: int) -> None:
        owners = self.owners[topic]
        owners[giver] -= 1
        self.loads[giver] -= 1
        if not owners[giver]:
            del owners[giver]
        self.add(topic, taker)

    def owned_by(self, member: int) -> Iterator[bytes]:
        return (topic for topic in self.subscriptions[member] if member in self.owners[topic])

    def least_loaded(self, topic: bytes) -> int:
        """Return the subscriber with the smallest load; loads that have decreased may be missed."""
        heap = self._least_loaded.get(topic)
        if heap is None:
            heap = self._least_loaded[topic] = [
                (self.loads[member], member) for member in self.subscribers[topic]
            ]
            heapify(heap)
        while (load := self.loads[heap[0][1]]) != heap[0][0]:  # the load has changed since the push
            heapreplace(heap, (load, heap[0][1]))
        return heap[0][1]


def assign_heterogeneous(
    members: Sequence[AssignorMember], partitions: Mapping[bytes, int]
) -> Sequence[Assignment]:
    """Return an assignment for each member, as balanced as the subscriptions allow."""
    kept, free = retain_owned(members, partitions)
    counts = PartitionCounts(members, kept)
    # Topics with many partitions per subscriber come first, because they leave the least choice.
    subscribers = {topic: len(counts.subscribers[topic]) for topic in free}
    for topic in sorted(free, key=lambda id_: (-partitions[id_] / subscribers[id_], subscribers[id_], id_)):
        for _ in free[topic]:
            counts.add(topic, counts.least_loaded(topic))
    balance_directly(counts)
    balance_by_chains(counts)
    # Each member keeps its own partitions first, as far as the counts allow, and then gets vacant ones.
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


def balance_by_chains(counts: PartitionCounts, max_visits: int = MAX_VISITS) -> None:
    """Move partitions along chains until no chain improves the balance, or `max_visits` are used up.

    The search starts at the most loaded member. If it finds no chain, then all members in its reach have
    as many partitions or one fewer, and none of them can give to a member out of reach: they are settled,
    and later searches skip them.
    """
    most_loaded = [(-load, member) for member, load in enumerate(counts.loads)]
    heapify(most_loaded)
    settled: set[int] = set()
    while most_loaded and max_visits > 0:
        negative_load, giver = heappop(most_loaded)
        if giver in settled or -negative_load != counts.loads[giver]:
            continue
        search = _Search(counts, giver, settled)
        taker = search.run()
        max_visits -= search.visits
        if taker is None:
            settled.update(search.reached)
            continue
        for topic, source, target in search.chain_to(taker):
            counts.move(topic, source, target)
        for member in (giver, taker):
            heappush(most_loaded, (-counts.loads[member], member))


class _Search:
    """A breadth-first search from one member: the shortest chain moves the fewest partitions."""

    def __init__(self, counts: PartitionCounts, start: int, settled: set[int]) -> None:
        self._counts = counts
        self._start = start
        self._settled = settled
        self._topics: set[bytes] = set()  # their subscribers are reached
        self.reached: dict[int, tuple[int, bytes]] = {start: (start, b"")}  # giver and topic by taker
        self.visits = 0

    def run(self) -> int | None:
        """Return the least loaded of the nearest members with at least two partitions fewer, or None."""
        loads = self._counts.loads
        layer = [self._start]
        while layer:
            layer = [taker for giver in layer for taker in self._takers(giver)]
            taker = min(layer, key=lambda member: (loads[member], member), default=None)
            if taker is not None and loads[taker] + 2 <= loads[self._start]:
                return taker
        return None

    def _takers(self, giver: int) -> Iterator[int]:
        """Yield the members that `giver` can give a partition to and that were not reached before."""
        for topic in self._counts.owned_by(giver):
            if topic in self._topics:
                continue
            self._topics.add(topic)
            subscribers = self._counts.subscribers[topic]
            self.visits += len(subscribers)
            for taker in subscribers:
                if taker not in self.reached and taker not in self._settled:
                    self.reached[taker] = giver, topic
                    yield taker

    def chain_to(self, member: int) -> Iterator[tuple[bytes, int, int]]:
        """Yield topic, giver and taker of each link, the last link first."""
        while member != self._start:
            giver, topic = self.reached[member]
            yield topic, giver, member
            member = giver
