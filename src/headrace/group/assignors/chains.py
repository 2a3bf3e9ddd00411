"""Evening out over several topics: the last step of the uniform assignor for mixed subscriptions.

Members 0 (topic A), 1 (A, B) and 2 (B) have 9, 10 and 11 partitions. Each topic by itself is level, yet
2 can give one of B to 1, and 1 one of A to 0. Such a chain from one member to another with at least two
fewer makes the differences smaller; when there is none left, they are as small as can be.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from headrace.group.assignors.numbers import Numbers

# How many subscribers of topics a search may look at, all chains together: a fraction of a second. Groups
# that need more have hundreds of overlapping subscriptions, and keep a balance that is merely good.
MAX_VISITS = 2_000_000


def even_out(numbers: Numbers, max_visits: int = MAX_VISITS) -> None:
    """Move partitions along chains until there is none that helps, or `max_visits` are used up.

    The search starts at the most loaded member. If no chain leads away from it, then everybody it could
    reach has as many partitions as it or one fewer, and nobody among them can give to anyone else: they
    are settled, and no later search needs to look at them.
    """
    richest = [(-load, member) for member, load in enumerate(numbers.loads)]
    heapify(richest)
    settled: set[int] = set()
    while richest and max_visits > 0:
        negative_load, giver = heappop(richest)
        if giver in settled or -negative_load != numbers.loads[giver]:
            continue
        search = _Search(numbers, giver, settled)
        taker = search.run()
        max_visits -= search.visits
        if taker is None:
            settled.update(search.reached)
            continue
        for topic, source, target in search.chain_to(taker):
            numbers.move(topic, source, target)
        for member in (giver, taker):
            heappush(richest, (-numbers.loads[member], member))


class _Search:
    """Breadth first from one member: a short chain moves few partitions."""

    def __init__(self, numbers: Numbers, start: int, settled: set[int]) -> None:
        self._numbers = numbers
        self._start = start
        self._settled = settled
        self._topics: set[bytes] = set()  # whose subscribers are reached
        self.reached: dict[int, tuple[int, bytes]] = {start: (start, b"")}  # from whom, by which topic
        self.visits = 0

    def run(self) -> int | None:
        """The least loaded among the nearest members with at least two partitions less than the first."""
        loads = self._numbers.loads
        layer = [self._start]
        while layer:
            layer = [taker for giver in layer for taker in self._takers(giver)]
            taker = min(layer, key=lambda member: (loads[member], member), default=None)
            if taker is not None and loads[taker] + 2 <= loads[self._start]:
                return taker
        return None

    def _takers(self, giver: int) -> Iterator[int]:
        """Whoever `giver` can give something and was not reached before."""
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
        """Topic, giver, taker of each link, the last link first."""
        while member != self._start:
            giver, topic = self.reached[member]
            yield topic, giver, member
            member = giver
