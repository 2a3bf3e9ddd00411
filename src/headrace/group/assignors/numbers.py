"""How many partitions of each topic every member is to have: what balancing works on."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace

from headrace.group.assignors.common import Assignment, AssignorMember


class Numbers:
    """Who owns how many partitions of what. A member is known by its place in the group."""

    def __init__(self, members: Sequence[AssignorMember], kept: Sequence[Assignment]) -> None:
        self.loads = [0] * len(members)  # of all topics together
        self.subscriptions = [sorted(member.topics) for member in members]
        self.subscribers: dict[bytes, list[int]] = {}
        for member, topics in enumerate(self.subscriptions):
            for topic in topics:
                self.subscribers.setdefault(topic, []).append(member)
        # Of each topic, how many partitions its owners have; nobody is there with none.
        self.owners: dict[bytes, dict[int, int]] = {topic: {} for topic in self.subscribers}
        self._poorest: dict[bytes, list[tuple[int, int]]] = {}  # by topic, a heap of load and subscriber
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

    def poorest(self, topic: bytes) -> int:
        """The subscriber with the smallest load, or one that had it before another gave something away."""
        heap = self._poorest.get(topic)
        if heap is None:
            heap = self._poorest[topic] = [(self.loads[member], member) for member in self.subscribers[topic]]
            heapify(heap)
        while (load := self.loads[heap[0][1]]) != heap[0][0]:  # loads have changed since it was put there
            heapreplace(heap, (load, heap[0][1]))
        return heap[0][1]
