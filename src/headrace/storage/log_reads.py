"""Reads of a partition's log: batches from an offset on, records by their time, aborted transactions."""

from collections.abc import Callable

from headrace.protocol.compression import Buffer
from headrace.storage.checks.damage import first_damage
from headrace.storage.errors import CorruptLog, LogOffline, OffsetOutOfRange
from headrace.storage.files import base_offset_of
from headrace.storage.log_files import LogFiles, is_harmless
from headrace.storage.segment import Segment
from headrace.storage.time_lookup import FoundOffset, TimestampSearch
from headrace.storage.txn_index import AbortedTxn

_REMEMBERED_POSITIONS = 128


class ReadableLog(LogFiles):
    """A log that can be read."""

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        max_offset: int | None = None,
        at_least_one: bool = True,
        cached_only: bool = False,
    ) -> Buffer:
        """Return whole batches from the one that contains `offset` on; nothing at the log end offset.

        The first batch may begin before `offset`: a batch is one checksummed unit and is never split. No
        batch reaches `max_offset`, and together they have at most `max_bytes`, except that the first is
        returned whatever its size if `at_least_one` is set. With `cached_only`, NotCached is raised, and
        nothing changes, if the read would wait for the disk.
        """
        self._ensure_online()
        end = self.log_end_offset if max_offset is None else min(max_offset, self.log_end_offset)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, start=self.log_start_offset, end=self.log_end_offset)
        if offset >= end:
            return b""
        damage = first_damage(self.damaged, offset) if self.damaged else None
        if damage is not None:
            if damage.from_offset <= offset:
                raise CorruptLog(damage.path, 0, damage.why)
            end = min(end, damage.from_offset)
        try:
            return self._read(offset, end, max(0, max_bytes), at_least_one, cached_only)
        except CorruptLog as error:
            self.suspect_segment(base_offset_of(error.path))
            raise
        except OSError as error:
            segment = self.segments.of(offset)
            if segment is self.active or is_harmless(error):
                raise self._fail("read", error, harmless=True) from error
            self.suspect_segment(segment.base_offset)
            raise CorruptLog(segment.path, 0, error) from error

    def suspect(self, offset: int) -> None:
        """Have the segment of `offset` checked: somebody could not use its records."""
        self.suspect_segment(self.segments.of(offset).base_offset)

    def _read(self, offset: int, end: int, max_bytes: int, at_least_one: bool, cached_only: bool) -> Buffer:
        segment, start = self._locate(offset, cached_only)
        limit = segment.size
        if end < self.log_end_offset and self.segments.of(end).base_offset <= segment.base_offset:
            within, position = self._locate(end, cached_only)
            limit = position if within is segment else segment.size
        if start >= limit:
            return b""
        data, next_offset = segment.read(
            start, limit, max_bytes, at_least_one=at_least_one, cached_only=cached_only
        )
        stop = start + len(data)
        if stop < segment.size:
            if next_offset is None:
                next_offset = segment.base_offset_at(stop, cached_only=cached_only)
            self._remember(next_offset, segment, stop)
        elif segment is self.active:
            self._remember(self.log_end_offset, segment, stop)
        return data

    def _locate(self, offset: int, cached_only: bool) -> tuple[Segment, int]:
        """Return the segment and the position of the first batch that reaches `offset`."""
        known = self._positions.get(offset)
        if known is not None and known[1] < known[0].size:
            return known
        number = self.segments.number_of(offset)
        segment = self.segments[number]
        position = segment.position_of(offset, cached_only=cached_only)
        while position == segment.size and segment is not self.active:
            number += 1  # compaction or retention has left no batch up to the next segment
            segment, position = self.segments[number], 0
        return segment, position

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Remember where `offset` is: the reader that has got this far fetches it next."""
        self._positions[offset] = segment, position
        if len(self._positions) > _REMEMBERED_POSITIONS:
            del self._positions[next(iter(self._positions))]

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """Return the first record at `timestamp` or later, in log order; None if there is none."""
        return self._search(timestamp)

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """Return the first record with the maximum timestamp; None in an empty log."""
        return self._search(None)

    def _search(self, timestamp: int | None) -> FoundOffset | None:
        search = self.timestamp_search(timestamp)
        try:
            while (step := search.next_step()) is not None:
                step()
        except OSError as error:
            raise self.failed("search", error) from error
        return search.found

    def timestamp_search(self, timestamp: int | None) -> TimestampSearch:
        """Return a search for the first record at `timestamp` or later; None searches the maximum timestamp.

        Its steps may run in another thread. If `cuts` has changed when one of them fails, search again.
        """
        self._ensure_online()
        segments = self.segments.starting_with(self.log_start_offset)
        return TimestampSearch(segments, self.log_start_offset, timestamp)

    def failed(self, doing: str, error: OSError) -> LogOffline:
        """Take the log offline, unless the process only has too many open files."""
        return self._fail(doing, error, harmless=True)

    def last_stable_offset(self, high_watermark: int) -> int:
        """Return the last stable offset: every transaction before it has a committed outcome."""
        unstable = self.producers.first_unstable_offset(high_watermark)
        if unstable is None:
            return high_watermark
        return min(max(unstable, self.log_start_offset), high_watermark)  # its first records may be deleted

    def aborted_transactions(self, start: int, end: int | Callable[[], int]) -> list[AbortedTxn]:
        """Return the aborted transactions with records in [start, end), which a consumer has to skip.

        If `end` is a function, it is called only if there are aborted transactions.
        """
        self._ensure_online()
        aborted: list[AbortedTxn] = []
        try:
            for segment in self.segments.starting_with(start):
                if not segment.txn_index:
                    continue
                end = end if isinstance(end, int) else end()
                found, may_continue = segment.txn_index.overlapping(start, end)
                aborted += found
                if not may_continue:
                    return aborted
        except OSError as error:
            raise self._fail("read", error, harmless=True) from error
        return aborted
