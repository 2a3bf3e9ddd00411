"""Searches for records in a topic, within bounds on time, records and bytes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic

from headrace.client.records.following import Follower
from headrace.client.records.one_by_one import END, Record, Start
from headrace.client.records.scanning_back import (
    STEP_S,
    Backwards,
    Bounds,
    Kept,
    ScanCancelled,
    Search,
    Select,
    Stopped,
)
from headrace.client.wire.connection_settings import Target

__all__ = ["Bounds", "Scan", "ScanCancelled", "Stopped", "scan"]

FETCHED: Final = {
    "queued.max.messages.kbytes": 1024,  # fetched ahead of a search; a response may exceed it
    "fetch.max.bytes": 512 * 1024,  # of a response: small compressed records take 20 times as much memory
    "max.partition.fetch.bytes": 128 * 1024,
    "fetch.queue.backoff.ms": 10,  # by default a search would pause for 1 s whenever that much is fetched
    "message.max.bytes": 512 * 1024,  # which librdkafka wants to be no larger than fetch.max.bytes
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan(Generic[Kept]):
    """The result of a search and its cost; the next search continues at `next_offsets`."""

    found: tuple[Kept, ...]
    records: int
    size_bytes: int
    took_ms: int
    stopped_by: Stopped
    next_offsets: Mapping[int, int]


def scan(
    target: Target,
    topic: str,
    start: Start,
    *,
    select: Select,
    keep: Callable[[Record], Kept],
    bounds: Bounds,
    partitions: Sequence[int] = (),
    positions: Mapping[int, int] | None = None,
    is_full: Callable[[], bool] = lambda: False,
) -> Scan[Kept]:
    """Return the first records that `select` accepts; the newest first if `start` counts from the end.

    The newest records are searched backwards, from the end or from `positions`, and `next_offsets` are before
    them. Records may be large: only the result of `keep` is kept for each, until `is_full` is true.
    """
    began_s = time.monotonic()
    deadline_s = began_s + bounds.time_s
    begin = start if start.last is None else END
    options: dict[str, str | int] = dict(FETCHED)
    if start.last is not None:
        options["queued.min.messages"] = 1000  # records after a window are fetched in vain
    with Follower(
        target, topic, begin, partitions=partitions, positions=positions, options=options
    ) as follower:
        kind = _Forwards if start.last is None else Backwards
        looking: Backwards[Kept] | _Forwards[Kept] = kind(
            follower, start.last, select, bounds, deadline_s, keep=keep, is_full=is_full
        )
        looking.run()
        return Scan(
            found=tuple(looking.found),
            records=looking.spent.records,
            size_bytes=looking.spent.size_bytes,
            took_ms=int((time.monotonic() - began_s) * 1000),
            stopped_by=looking.stopped_by,
            next_offsets=dict(looking.next_offsets),
        )


class _Forwards(Search[Kept]):
    """A search in the order of the log, until a bound is reached."""

    def run(self) -> None:
        self.next_offsets = dict(self._follower.positions)
        for record, fits in self._records():
            if fits:
                self.found.append(self._make(record))
                if len(self.found) == self._bounds.found:
                    self.stopped_by = "limit"
                    return
                if self._is_full():
                    self.stopped_by = "bytes"
                    return

    def _records(self) -> Iterator[tuple[Record, bool]]:
        while not self._follower.at_end:
            if self._is_over():
                return
            # Records that were written after the search began do not count.
            ends, read = self._follower.ends, self._follower.step(STEP_S)
            records = [record for record in read if record.offset < ends[record.partition or 0]]
            for record, fits in zip(records, self._select(records), strict=True):
                if self._is_over():
                    return
                self.spent.add(1, len(record.key or b"") + len(record.value or b""))
                assert record.partition is not None, record
                self.next_offsets[record.partition] = record.offset + 1
                yield record, fits
        self.next_offsets = {
            index: max(offset, self._follower.ends[index]) for index, offset in self.next_offsets.items()
        }
