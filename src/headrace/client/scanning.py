"""Looking for records in a topic, within bounds: what was found, how far it got, where to go on."""

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headrace.client.following import Follower
from headrace.client.records import Record, Start

_STEP_S: Final = 0.2

Stopped = Literal["end", "limit", "records", "bytes", "time"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Where a search ends, whatever comes first."""

    found: int
    records: int
    size_bytes: int
    time_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What was found, and what was looked at for it; `next_offsets` is where to go on."""

    found: tuple[Record, ...]
    records: int
    size_bytes: int
    took_ms: int
    stopped_by: Stopped
    next_offsets: Mapping[int, int]


def scan(
    bootstrap: str,
    topic: str,
    start: Start,
    *,
    fits: Callable[[Record], bool],
    bounds: Bounds,
    partitions: Sequence[int] = (),
    positions: Mapping[int, int] | None = None,
) -> Scan:
    """The first records that fit; if `start` counts from the end, the newest of them, newest first."""
    began_s = time.monotonic()
    newest = start.last is not None
    with Follower(bootstrap, topic, start, partitions=partitions, positions=positions) as follower:
        looking = _Looking(follower, bounds, began_s + bounds.time_s)
        if newest:
            kept = heapq.nlargest(bounds.found, filter(fits, looking), key=_age)
        else:
            kept = list(looking.until_enough(fits))
        return Scan(
            found=tuple(kept),
            records=looking.records,
            size_bytes=looking.size_bytes,
            took_ms=int((time.monotonic() - began_s) * 1000),
            stopped_by=looking.stopped_by,
            next_offsets=dict(looking.next_offsets),
        )


class _Looking:
    """The records of a follower, one by one, until a bound is reached."""

    def __init__(self, follower: Follower, bounds: Bounds, deadline_s: float) -> None:
        self.records = self.size_bytes = 0
        self.stopped_by: Stopped = "end"
        self.next_offsets = dict(follower.positions)
        self._follower = follower
        self._bounds = bounds
        self._deadline_s = deadline_s

    def __iter__(self) -> Iterator[Record]:
        while not self._follower.at_end:
            if self._is_over():
                return
            for record in self._follower.step(_STEP_S):
                assert record.partition is not None, record
                if record.offset >= self._follower.ends[record.partition]:
                    continue  # it has come since we began
                if self._is_over():
                    return
                self.records += 1
                self.size_bytes += len(record.key or b"") + len(record.value or b"")
                self.next_offsets[record.partition] = record.offset + 1
                yield record
        self.next_offsets = {
            index: max(offset, self._follower.ends[index]) for index, offset in self.next_offsets.items()
        }

    def until_enough(self, fits: Callable[[Record], bool]) -> Iterator[Record]:
        left = self._bounds.found
        for record in self:
            if not fits(record):
                continue
            yield record
            left -= 1
            if not left:
                self.stopped_by = "limit"
                return

    def _is_over(self) -> bool:
        if self.records >= self._bounds.records:
            self.stopped_by = "records"
        elif self.size_bytes >= self._bounds.size_bytes:
            self.stopped_by = "bytes"
        elif time.monotonic() > self._deadline_s:
            self.stopped_by = "time"
        else:
            return False
        return True


def _age(record: Record) -> tuple[int, int, int]:
    return record.timestamp_ms or 0, record.offset, -(record.partition or 0)
