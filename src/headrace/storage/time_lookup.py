"""Offsets by timestamp: the time index leads to a batch, and its records decide.

A search proceeds batch by batch. Each step reads and decompresses a batch, so a broker runs the steps in
a thread; between two steps the log's own thread selects the next segment. For a batch that is
unreadable, or has too many records to read, the first offset is returned.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from headrace.protocol.batch import BatchHeader
from headrace.protocol.errors import KafkaError
from headrace.protocol.records import Record, decode_batch
from headrace.storage.append.inspection import MAX_INSPECTED_BYTES, MAX_RECORDS
from headrace.storage.checks.scan import PrivateFile, Scanner
from headrace.storage.segment import Segment

_CHUNK = 64 * 1024


class FoundOffset(NamedTuple):
    """A record found by its timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


class TimestampSearch:
    """Finds the first record, in log order, at `timestamp` or later; if None, the first with the maximum.

    search = TimestampSearch(segments, log_start_offset, timestamp)
    while (step := search.next_step()) is not None:
        step()                                             # in any thread
    search.found
    """

    def __init__(self, segments: Sequence[Segment], log_start_offset: int, timestamp: int | None) -> None:
        self.found: FoundOffset | None = None
        self._segments = iter(tuple(segments))
        self._log_start_offset = log_start_offset
        self._timestamp = timestamp
        self._pass: Iterator[None] | None = None  # over the batches of one segment

    def next_step(self) -> Callable[[], None] | None:
        """Return the next step, or None if the search is finished. Called on the log's own thread."""
        if self.found is not None and self._timestamp is not None:
            return None
        if self._pass is None:
            segment = next(filter(self._may_hold, self._segments), None)
            if segment is None:
                return None
            self._pass = self._first_at(segment) if self._timestamp is not None else self._youngest(segment)
        return self._step

    def _may_hold(self, segment: Segment) -> bool:
        if not segment.size:
            return False  # it may have no file
        youngest = segment.max_timestamp.timestamp
        if self._timestamp is not None:
            return youngest >= self._timestamp
        return self.found is None or youngest > self.found.timestamp

    def _step(self) -> None:
        """Read one batch."""
        assert self._pass is not None, "there is a step only within a segment"
        if next(self._pass, self) is self:
            self._pass = None

    def _first_at(self, segment: Segment) -> Iterator[None]:
        timestamp = self._timestamp
        assert timestamp is not None, "without one the youngest record is searched for"
        scanned = _Scanned(segment, segment.position_of_timestamp(timestamp))

        def batches() -> Iterator[None]:
            for header, batch in scanned.batches(self._log_start_offset, timestamp):
                for record in _records(header, batch, self._log_start_offset):
                    if record.timestamp >= timestamp and record.offset >= self._log_start_offset:
                        self.found = FoundOffset(record.timestamp, record.offset, header.leader_epoch)
                        return
                yield

        return batches()

    def _youngest(self, segment: Segment) -> Iterator[None]:
        largest = segment.max_timestamp
        whole = self._log_start_offset <= segment.base_offset  # otherwise the maximum may have been deleted
        scanned = _Scanned(segment, segment.position_of(largest.offset if whole else self._log_start_offset))

        def batches() -> Iterator[None]:
            for header, batch in scanned.batches(self._log_start_offset, -1):
                if self.found is not None and header.max_timestamp <= self.found.timestamp:
                    continue
                for record in _records(header, batch, self._log_start_offset):
                    younger = self.found is None or record.timestamp > self.found.timestamp
                    if younger and record.offset >= self._log_start_offset:
                        self.found = FoundOffset(record.timestamp, record.offset, header.leader_epoch)
                if self.found is not None and self.found.timestamp >= largest.timestamp:
                    return
                yield

        return batches()


class _Scanned:
    """A scan of a segment from a given batch on; it stays valid when the segment is deleted."""

    def __init__(self, segment: Segment, start: int) -> None:
        self._file = PrivateFile(segment.path, segment.file.duplicate())
        self._scanner = Scanner(self._file, segment.size, chunk=_CHUNK)
        self._start = start

    def batches(self, log_start_offset: int, timestamp: int) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield the batches that reach `log_start_offset` with a max timestamp of at least `timestamp`."""
        with self._file:
            for position, header in self._scanner.headers(self._start):
                if header.max_timestamp >= timestamp and header.next_offset > log_start_offset:
                    yield header, self._scanner.batch(position, header)


def _records(header: BatchHeader, batch: memoryview, log_start_offset: int) -> Iterator[Record]:
    """Yield the records of a batch; one with its first offset and max timestamp if it is unreadable."""
    first = Record(None, None, (), header.max_timestamp, max(header.base_offset, log_start_offset))
    if header.records_count > MAX_RECORDS:
        yield first
        return
    try:
        yield from decode_batch(batch, header, max_bytes=MAX_INSPECTED_BYTES)
    except KafkaError:
        yield first
