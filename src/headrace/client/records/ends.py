"""When a member of a group has come to the end of all it has to read. Pure: it is told the time."""

from collections.abc import Iterable
from typing import Final

from headrace.protocol.ids import TopicPartition

IDLE_AFTER_S: Final = 15.0  # without an assignment: in the consumer protocol nobody says that none will come


class Ends:
    """What is left to read of the partitions that have fallen to one member, which may be none."""

    def __init__(self, now_s: float, *, incremental: bool, more_to_come: bool = False) -> None:
        self._open: set[TopicPartition] = set()
        self._incremental = incremental  # or all is revoked before anything is assigned
        self._more_to_come = more_to_come  # for a while what is assigned first may not be all
        self._settled = False
        self._idle_from_s = now_s + IDLE_AFTER_S

    def assigned(self, places: Iterable[TopicPartition]) -> None:
        """These are to be read, beside what there was."""
        self._open.update(places)
        self._settled = True

    def revoked(self, places: Iterable[TopicPartition]) -> None:
        """These are another's now, or will be assigned again in a moment."""
        self._open.difference_update(places)
        self._settled = self._incremental

    def reached(self, place: TopicPartition) -> None:
        """There is nothing more in this one."""
        self._open.discard(place)

    def all_reached(self, now_s: float) -> bool:
        """True at the end of everything, and once nothing has been assigned for long."""
        settled = self._settled and not self._more_to_come
        return not self._open and (settled or now_s >= self._idle_from_s)
