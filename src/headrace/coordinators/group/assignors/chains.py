"""Balancing over several topics: the last step of the uniform assignor for different subscriptions.

Members 0 (topic A), 1 (A, B) and 2 (B) have 9, 10 and 11 partitions. No direct move improves the balance, yet
2 can give a partition of B to 1, and 1 one of A to 0. Each chain to a member with at least two partitions
fewer improves the balance; when no such chain is left, the balance is optimal.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from headrace.coordinators.group.assignors.partition_counts import PartitionCounts

# How many subscribers all searches together may visit, which takes a fraction of a second. Groups that need
# more have hundreds of overlapping subscriptions; their balance is good, but maybe not optimal.
MAX_VISITS = 2_000_000


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
        self._numbers = counts
        self._start = start
        self._settled = settled
        self._topics: set[bytes] = set()  # their subscribers are reached
        self.reached: dict[int, tuple[int, bytes]] = {start: (start, b"")}  # giver and topic by taker
        self.visits = 0

    def run(self) -> int | None:
        """Return the least loaded of the nearest members with at least two partitions fewer, or None."""
        loads = self._numbers.loads
        layer = [self._start]
        while layer:
            layer = [taker for giver in layer for taker in self._takers(giver)]
            taker = min(layer, key=lambda member: (loads[member], member), default=None)
            if taker is not None and loads[taker] + 2 <= loads[self._start]:
                return taker
        return None

    def _takers(self, giver: int) -> Iterator[int]:
        """Yield the members that `giver` can give a partition to and that were not reached before."""
        for topic in self._numbers.owned_by(giver):
            if topic in self._topics:
                continue
            self._topics.add(topic)
            subscribers = self._numbers.subscribers[topic]
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
