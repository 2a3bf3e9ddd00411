"""The number of partitions of each topic that every member gets; balancing works on these counts."""

from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace

from headrace.coordinators.group.assignors.common import Assignment, AssignorMember


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
