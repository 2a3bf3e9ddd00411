"""Searches for the newest records of a topic, backwards.

A log can only be read forwards, so it is read in windows, the last one first. The records of all partitions
are merged by timestamp; when those of a partition are used up, its next window is read first.
"""

import heapq
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Final, Generic, Literal, TypeVar

from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import Record

STEP_S: Final = 0.2  # how soon the end of the time is noticed

Kept = TypeVar("Kept")  # what a search keeps of a record
Stopped = Literal["end", "limit", "records", "bytes", "time"]
Select = Callable[[Sequence[Record]], Sequence[bool]]
"""Returns for each record whether the search is for it."""


class ScanCancelled(Exception):
    """Nobody waits for the result of a search any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of a search, which ends at the first that is reached, or when it is cancelled."""

    found: int
    records: int
    size_bytes: int
    time_s: float
    cancelled: Event = field(default_factory=Event)


@dataclass(slots=True)
class Spent:
    """The records and bytes that a search has read."""

    records: int = 0
    size_bytes: int = 0

    def add(self, records: int, size_bytes: int) -> None:
        self.records += records
        self.size_bytes += size_bytes

    def over(self, bounds: Bounds, deadline_s: float) -> Stopped | None:
        """Return the bound that is reached, or None; raise ScanCancelled."""
        if bounds.cancelled.is_set():
            raise ScanCancelled
        if self.records >= bounds.records:
            return "records"
        if self.size_bytes >= bounds.size_bytes:
            return "bytes"
        return "time" if time.monotonic() > deadline_s else None


_FIRST: Final = 64  # records of all first windows together; the size doubles each time
_MOST: Final = 50_000
_SELECTED: Final = 1000  # records that are selected at a time; between, the end of the time is noticed
_WINDOW_BYTES: Final = 16 * 1024 * 1024  # of windows read at a time, by the average size so far

Age = tuple[int, int, int]


@dataclass(slots=True)
class _Partition:
    """Offsets [floor, start) are not read yet, [start, before) are read and not merged yet."""

    floor: int
    start: int
    before: int
    read: deque[tuple[Age, Record | None]] = field(default_factory=deque)  # None: it does not match


class Search(Generic[Kept]):
    """A search from where `follower` stands. Of each record only what `keep` returns is kept."""

    def __init__(
        self,
        follower: Follower,
        last: int | None,
        select: Select,
        bounds: Bounds,
        deadline_s: float,
        *,
        keep: Callable[[Record], Kept],
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        self.found: list[Kept] = []
        self.spent = Spent()
        self.stopped_by: Stopped = "end"
        self._follower, self._select, self._bounds, self._deadline_s = follower, select, bounds, deadline_s
        self._last, self._make, self._is_full = last, keep, is_full

    def _is_over(self) -> bool:
        bound = self.spent.over(self._bounds, self._deadline_s)
        if bound is not None:
            self.stopped_by = bound
        return bound is not None


class Backwards(Search[Kept]):
    """A search back by `last` records of each partition at most."""

    @property
    def next_offsets(self) -> Mapping[int, int]:
        """Return the offsets from which on all records were searched."""
        return {index: each.before for index, each in self._partitions.items()}

    def run(self) -> None:
        """Search. Records that were read before a bound was reached are still merged."""
        self._partitions = {
            index: _Partition(
                floor=max(self._follower.begins[index], end - (self._last or 0)), start=end, before=end
            )
            for index, end in self._follower.positions.items()
        }
        self._newest: list[tuple[Age, int]] = []  # a heap with the newest record of each partition
        self._size = max(_FIRST, len(self._partitions))
        may_read = True
        while len(self.found) < self._bounds.found and not self._is_full():
            if may_read and any(not each.read for each in self._unread().values()):
                may_read = not self._is_over() and self._read_more()
            elif self._newest:
                _, index = heapq.heappop(self._newest)
                partition = self._partitions[index]
                (_, negative, _), record = partition.read.pop()
                partition.before = -negative if partition.read else partition.start
                if record is not None:
                    self.found.append(self._make(record))
                if partition.read:
                    heapq.heappush(self._newest, (partition.read[-1][0], index))
            else:
                return
        if self._newest or self._unread():
            self.stopped_by = "limit" if len(self.found) == self._bounds.found else "bytes"

    def _unread(self) -> dict[int, _Partition]:
        return {index: each for index, each in self._partitions.items() if each.start > each.floor}

    def _read_more(self) -> bool:
        """Read one more window of every partition with few records left; return False at a bound."""
        windows = self._windows()
        self._follower.place({index: start for index, (start, _) in windows.items()})
        came: dict[int, list[Record]] = {index: [] for index in windows}
        waiting, size_bytes = set(windows), 0
        while waiting:
            for record in self._follower.step(STEP_S):
                index = record.partition or 0
                if index in waiting and record.offset < windows[index][1]:
                    came[index].append(record)
                    size_bytes += len(record.key or b"") + len(record.value or b"")
                if index in waiting and record.offset >= windows[index][1] - 1:
                    waiting.discard(index)
            waiting &= self._follower.unfinished
            if waiting and self._is_cut(size_bytes):
                return False
        selected: dict[int, list[bool]] = {index: [] for index in windows}
        for index, records in came.items():
            for first in range(0, len(records), _SELECTED):
                if self._is_cut(size_bytes):
                    return False
                selected[index] += self._select(records[first : first + _SELECTED])
        for index, records in came.items():
            self._keep(index, windows[index][0], records, selected[index])
        self.spent.add(sum(map(len, came.values())), size_bytes)
        self._size = min(2 * self._size, _MOST)
        return True

    def _windows(self) -> dict[int, tuple[int, int]]:
        """Return the next window of partitions with few records left, those without any first."""
        unread = self._unread()
        left = self._bounds.records - self.spent.records
        if self.spent.records:
            average = max(1, self.spent.size_bytes // self.spent.records)
            left = min(left, max(1, _WINDOW_BYTES // average))
        share = max(1, min(self._size, left) // len(unread))
        poor = sorted(
            (len(each.read), index) for index, each in unread.items() if len(each.read) <= share // 2
        )
        return {
            index: (max(unread[index].floor, unread[index].start - share), unread[index].start)
            for _, index in poor[: max(1, left)]
        }

    def _keep(self, index: int, start: int, records: Sequence[Record], selected: Sequence[bool]) -> None:
        partition = self._partitions[index]
        had = bool(partition.read)
        newest_first = zip(reversed(records), reversed(selected), strict=True)
        partition.read.extendleft((_age(each), each if fits else None) for each, fits in newest_first)
        partition.start = start
        if not had:
            partition.before = 1 - partition.read[-1][0][1] if partition.read else start
            if partition.read:
                heapq.heappush(self._newest, (partition.read[-1][0], index))

    def _is_cut(self, size_bytes: int) -> bool:
        """Whether a bound is reached within a window. The bytes of the first window are not limited."""
        if self._bounds.cancelled.is_set():
            raise ScanCancelled
        if self.spent.records and self.spent.size_bytes + size_bytes >= self._bounds.size_bytes:
            self.stopped_by = "bytes"
        elif time.monotonic() > self._deadline_s:
            self.stopped_by = "time"
        else:
            return False
        return True


def _age(record: Record) -> Age:
    """Return a sort key by which the newest record is the first."""
    return -(record.timestamp_ms or 0), -record.offset, record.partition or 0
