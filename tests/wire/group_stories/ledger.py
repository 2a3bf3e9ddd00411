"""Who owns which partition, as the members' own callbacks tell it, and every moment when two did."""

import threading
from collections import defaultdict
from collections.abc import Collection

from wire.group_stories.reading import Place


class Ledger:
    """One for a group, told by members in many threads: what is true of it is true at one moment.

    A member tells before it gives up a partition and after it has got one. So two owners of one partition
    are two members that could both read it, whatever their threads did in between.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owned: dict[str, set[Place]] = defaultdict(set)
        self._history: list[str] = []
        self.overlaps: list[str] = []

    def assigned(self, member: str, places: Collection[Place]) -> None:
        with self._lock:
            self._history.append(f"{member} got {sorted(places)}")
            for other, owned in self._owned.items():
                if other != member and (both := owned.intersection(places)):
                    self.overlaps.append(f"{member} got {sorted(both)} while {other} had them")
            self._owned[member].update(places)

    def revoked(self, member: str, places: Collection[Place]) -> None:
        with self._lock:
            self._history.append(f"{member} gave up {sorted(places)}")
            self._owned[member].difference_update(places)

    def owned_by(self, member: str) -> frozenset[Place]:
        with self._lock:
            return frozenset(self._owned[member])

    def shares(self) -> dict[str, int]:
        """How many partitions each member owns that owns any."""
        with self._lock:
            return {member: len(owned) for member, owned in self._owned.items() if owned}

    def history(self, member: str = "") -> list[str]:
        """What the member told so far, or what all did, oldest first."""
        with self._lock:
            return [line for line in self._history if line.startswith(f"{member} " if member else "")]
