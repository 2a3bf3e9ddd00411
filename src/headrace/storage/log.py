"""One partition's log: its segments, leader epochs and producer state.

A log is used from one thread, except that `flush` and `unlink_deleted` may run in another, and that a
compaction copies closed segments in another. All calls block on the disk; appends go to the page cache and
return.
"""

import errno
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.protocol.batch import (
    BatchHeader,
    TimestampType,
    assign_append_time,
    assign_offset,
    read_header,
)
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.storage.batches import Batch, read_batches, writable
from headrace.storage.config import MAX_INT32, NEVER, LogConfig
from headrace.storage.errors import LogOffline, OffsetOutOfRange, RecordListTooLarge
from headrace.storage.files import DELETED, sync_directory
from headrace.storage.inspection import PreparedBatch, prepare
from headrace.storage.open_files import OpenFiles
from headrace.storage.replay import Derived, replay, take_in
from headrace.storage.segment import Segment
from headrace.storage.time_lookup import FoundOffset, TimestampSearch
from headrace.storage.txn_index import AbortedTxn
from headrace.storage.validation import check_expected_offset

_REMEMBERED_POSITIONS = 128
_NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE}  # the process, or the machine, has too many open files
NO_APPEND_TIME = -1

logger = logging.getLogger(__name__)


class Appended(NamedTuple):
    """The offsets of appended records, as a Produce response has them."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the records keep the producer's timestamps
    duplicate: bool = False  # of an earlier append; nothing was written


class Log:
    """An append-only sequence of batches between `log_start_offset` and `log_end_offset`.

    `headrace.storage.recovery.open_log` creates it. An OSError in any call takes the log offline: that call
    and all later ones raise LogOffline, and other logs are not affected. If the process only has too many
    open files, and the call has changed nothing, only that call raises LogOffline.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        segments: list[Segment],
        derived: Derived,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        create_files: Callable[[], None] | None = None,
        files: OpenFiles | None = None,
    ) -> None:
        """`create_files` creates the directory and the files of a new log before its first append."""
        self.files = files
        self.directory = directory
        self.config = config
        self.now_ms = now_ms
        self.segments = segments
        self.epochs, self.producers = self._derived = derived
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point  # everything before it has been flushed
        self.flushed_ms = now_ms()
        self.offline: str | None = None
        self._positions: dict[int, tuple[Segment, int]] = {}  # where recent readers continue
        self.last_unreadable_offset = -1  # the last one that compaction has logged
        self.cuts = 0  # how often bytes were removed from the log, for work in other threads
        self._deleted: list[Path] = []  # files that are still to be unlinked
        self.changed: set[Log] | None = None  # where the log adds itself after a change
        self._create_files = create_files
        self._has_durable_name = create_files is None

    @property
    def has_files(self) -> bool:
        """Whether the log's directory exists: a log to which nothing was ever appended has none."""
        return self._create_files is None

    def _ensure_files(self) -> None:
        if self._create_files is not None:
            self._create_files()
            self._create_files = None

    def use_config(self, config: LogConfig) -> None:
        """Apply changed settings, from the next append, flush or retention on."""
        has_other_flush_ms = config.flush_ms != self.config.flush_ms
        self.config = config
        if has_other_flush_ms:
            self._note_change()

    def _note_change(self) -> None:
        """Report that the log has something to flush, or offsets that a checkpoint has to store.

        Called after the change, in any thread: whoever takes the log out of the set must see the change.
        """
        if self.changed is not None:
            self.changed.add(self)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self.segments)

    # -- append --------------------------------------------------------------------------------

    def begin_epoch(self, epoch: int) -> None:
        """Note that the next records are written in leader epoch `epoch`."""
        self._ensure_online()
        self.epochs.begin(epoch, self.log_end_offset)

    def append(self, data: Buffer, *, leader_epoch: int) -> Appended:
        """Append a client's batch as leader, and return its offsets.

        `data` is changed in place (offset, leader epoch, append time) unless it is read-only, and has
        reached the page cache on return. A duplicate of an idempotent producer's batch returns the original
        offsets. An invalid batch raises a KafkaError, and nothing is written.
        """
        return self.append_prepared(self.prepare(data), leader_epoch=leader_epoch)

    def prepare(self, data: Buffer) -> PreparedBatch:
        """Return a client's batch, checked as the log's configuration requires (see `storage.inspection`)."""
        self._ensure_online()
        return prepare(data, self.config, self.now_ms())

    def append_prepared(self, batch: PreparedBatch, *, leader_epoch: int) -> Appended:
        """Append a client's batch that `prepare` has accepted under the log's current configuration."""
        self._ensure_online()
        view, header = batch.data, batch.header
        if self.config.append_expected_offset:
            check_expected_offset(header, self.log_end_offset)
        if header.has_producer:
            earlier = self.producers.check(header)
            if earlier is not None:
                stamped = self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
                append_time = earlier.timestamp if stamped else NO_APPEND_TIME
                return Appended(earlier.base_offset, earlier.last_offset, append_time, duplicate=True)
        return self._append_at_end(view, [Batch(header, None)], leader_epoch)

    def append_internal(self, data: Buffer, *, leader_epoch: int, transaction_version: int = 0) -> Appended:
        """Append batches of the broker itself: coordinator records and transaction markers."""
        self._ensure_online()
        view = writable(data)
        batches = read_batches(view)
        for header, marker in batches:
            if marker is not None:
                self.producers.check_marker(header, marker, transaction_version)
            elif header.has_producer:
                self.producers.check_epoch(header)
        return self._append_at_end(view, batches, leader_epoch)

    def append_as_follower(self, data: Buffer) -> Appended:
        """Append batches from the leader with their offsets and epochs; compaction may have left gaps."""
        self._ensure_online()
        view = memoryview(data)
        batches = read_batches(view)
        next_offset = self.log_end_offset
        for header, _ in batches:
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise InvalidRecord(
                    f"a batch at offsets {header.base_offset} to {header.last_offset} "
                    f"cannot follow offset {next_offset - 1} (INVALID_RECORD)"
                )
            next_offset = header.next_offset
        if next_offset - batches[0].header.base_offset > MAX_INT32:
            raise InvalidRecord(
                f"batches up to offset {next_offset - 1} do not fit in one segment (INVALID_RECORD)"
            )
        self._write(view, batches)
        return Appended(batches[0].header.base_offset, next_offset - 1, NO_APPEND_TIME)

    def _append_at_end(self, view: memoryview, batches: list[Batch], leader_epoch: int) -> Appended:
        append_time = NO_APPEND_TIME
        if self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
            append_time = self.now_ms()
        position = 0
        base_offset = next_offset = self.log_end_offset
        assigned = []
        for header, marker in batches:
            assign_offset(view, position, base_offset=next_offset, leader_epoch=leader_epoch)
            if append_time != NO_APPEND_TIME:
                assign_append_time(view, position, header.size, append_time)
            header = read_header(view, position)  # noqa: PLW2901  the same batch with its final offsets
            assigned.append(Batch(header, marker))
            position += header.size
            next_offset = header.next_offset
        self._write(view, assigned)
        return Appended(base_offset, next_offset - 1, append_time)

    def _write(self, view: memoryview, batches: list[Batch]) -> None:
        """Write batches with final offsets to the file, then update everything derived from it."""
        first, last = batches[0].header, batches[-1].header
        if len(view) > self.config.segment_bytes:
            raise RecordListTooLarge(len(view), limit=self.config.segment_bytes)
        size = self.active.size
        begun = False
        try:
            self._ensure_files()
            if self._must_roll(len(view), first, last):
                self._roll(first.base_offset)
                size = 0
            begun = (
                self.active.file.descriptor >= 0
            )  # the file is open: a failure from here on may leave a part
            self.active.append(view, [batch.header for batch in batches])
            if self.epochs.is_unwritten:
                self.epochs.write()
            for header, marker in batches:
                aborted = take_in(self._derived, header, marker)
                if aborted is not None:
                    self.active.txn_index.append(aborted)
            self.log_end_offset = last.next_offset
            self._note_change()
            if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
                self.flush()
        except OSError as error:
            self.active.cut_back(size)
            raise self._fail("append to", error, harmless=not begun) from error

    def _must_roll(self, size: int, first: BatchHeader, last: BatchHeader) -> bool:
        active = self.active
        if not active.has_room(size, last.last_offset, self.config):
            return active.size > 0 or not active.offset_index.can_hold(last.last_offset)
        return active.size > 0 and active.age_ms(self.now_ms(), first.max_timestamp) > self.config.segment_ms

    def roll(self) -> None:
        """Close the active segment and start a new one at the log end offset, unless it is empty."""
        self._ensure_online()
        try:
            self._roll(self.log_end_offset)
        except OSError as error:
            raise self._fail("roll", error, harmless=True) from error

    def _roll(self, base_offset: int) -> None:
        closing = self.active
        if closing.base_offset == base_offset:
            return
        if closing.size:
            closing.seal()
            self.producers.next_offset = base_offset
            self.producers.take_snapshot()
        self.segments.append(self._new_segment(base_offset))
        if not closing.size:
            self.segments.remove(closing)
            closing.delete()  # it is empty: this does not block
        self._note_change()

    def _new_segment(self, base_offset: int) -> Segment:
        now_ms = self.now_ms()
        return Segment.create(self.directory, base_offset, self.config, now_ms=now_ms, files=self.files)

    # -- read ----------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, *, max_offset: int | None = None, at_least_one: bool = True
    ) -> Buffer:
        """Return whole batches from the one that contains `offset` on; nothing at the log end offset.

        The first batch may begin before `offset`: a batch is one checksummed unit and is never split. No
        batch reaches `max_offset`, and together they have at most `max_bytes`, except that the first is
        returned whatever its size if `at_least_one` is set.
        """
        self._ensure_online()
        end = self.log_end_offset if max_offset is None else min(max_offset, self.log_end_offset)
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, start=self.log_start_offset, end=self.log_end_offset)
        if offset >= end:
            return b""
        try:
            return self._read(offset, end, max(0, max_bytes), at_least_one)
        except OSError as error:
            raise self._fail("read", error, harmless=True) from error

    def _read(self, offset: int, end: int, max_bytes: int, at_least_one: bool) -> Buffer:
        segment, start = self._locate(offset)
        limit = segment.size
        if end < self.log_end_offset and end < self._end_of(segment):
            within, position = self._locate(end)
            limit = position if within is segment else segment.size
        if start >= limit:
            return b""
        data, next_offset = segment.read(start, limit, max_bytes, at_least_one=at_least_one)
        stop = start + len(data)
        if stop < segment.size:
            self._remember(next_offset or segment.base_offset_at(stop), segment, stop)
        elif segment is self.active:
            self._remember(self.log_end_offset, segment, stop)
        return data

    def _end_of(self, segment: Segment) -> int:
        """Return the base offset of the segment after `segment`, or the log end offset."""
        after = self._segment_number(segment.base_offset) + 1
        return self.segments[after].base_offset if after < len(self.segments) else self.log_end_offset

    def _locate(self, offset: int) -> tuple[Segment, int]:
        """Return the segment and the position of the first batch that reaches `offset`."""
        known = self._positions.get(offset)
        if known is not None and known[1] < known[0].size:
            return known
        number = self._segment_number(offset)
        segment = self.segments[number]
        position = segment.position_of(offset)
        while position == segment.size and segment is not self.active:
            number += 1  # compaction or retention has left no batch up to the next segment
            segment, position = self.segments[number], 0
        return segment, position

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Remember where `offset` is: the reader that has got this far fetches it next."""
        self._positions[offset] = segment, position
        if len(self._positions) > _REMEMBERED_POSITIONS:
            del self._positions[next(iter(self._positions))]

    def _segment_number(self, offset: int) -> int:
        return max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)

    # -- time ----------------------------------------------------------------------------------

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
        segments = self.segments[self._segment_number(self.log_start_offset) :]
        return TimestampSearch(segments, self.log_start_offset, timestamp)

    def failed(self, doing: str, error: OSError) -> LogOffline:
        """Take the log offline, unless the process only has too many open files."""
        return self._fail(doing, error, harmless=True)

    # -- transactions --------------------------------------------------------------------------

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
            for segment in self.segments[self._segment_number(start) :]:
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

    # -- truncate and delete -------------------------------------------------------------------

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that contains `offset` or follows it.

        Of batches [10-10] [11-30] [31-99], truncate_to(31) keeps [10-10] [11-30], and so
        does truncate_to(35): a batch is one checksummed unit and is never split.
        """
        self._ensure_online()
        if offset >= self.log_end_offset:
            return
        if offset < self.segments[0].base_offset:
            self.truncate_fully(offset)
            return
        try:
            self._forget_positions()
            while self.active.base_offset > offset:
                self.segments.pop().delete(self.discard)
            position = self.active.position_of(offset)
            if position < self.active.size:
                offset = min(offset, self.active.base_offset_at(position))
                self.active.truncate_to(position, offset)
            # Compaction may have left a gap before `offset`: the log ends after its last batch, where
            # opening it again would find its end, too.
            offset = min(offset, self.active.resume())
            self._end_at(offset)
            self.producers.restore(start=self.log_start_offset, end=offset)
            replay(self._derived, self.segments)
            self.producers.next_offset = offset
        except OSError as error:
            raise self._fail("truncate", error) from error

    def truncate_fully(self, offset: int) -> None:
        """Drop everything and continue at `offset`: the follower is too far behind its leader."""
        self._ensure_online()
        try:
            self._ensure_files()
            self._forget_positions()
            while self.segments:
                self.segments.pop().delete(self.discard)
            self.segments.append(self._new_segment(offset))
            self.log_start_offset = offset
            self._end_at(offset)
            self.epochs.clear()
            self.producers.restore(start=0, end=0)
            self.producers.next_offset = offset
        except OSError as error:
            raise self._fail("truncate", error) from error

    def _end_at(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self._note_change()
        self.epochs.truncate_from_end(offset)

    def delete_records_before(self, offset: int) -> None:
        """Make `offset` the log start offset; retention deletes whole segments before it later."""
        self._ensure_online()
        if not 0 <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, start=self.log_start_offset, end=self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self._note_change()
            try:
                self.epochs.truncate_from_start(offset)
            except OSError as error:
                raise self._fail("delete records of", error) from error

    def delete_oldest_segments(self, count: int) -> None:
        """Delete the first `count` segments; if the active one is among them, an empty one replaces it."""
        self._ensure_online()
        try:
            if count >= len(self.segments):
                self._roll(self.log_end_offset)
                count = len(self.segments) - 1
            self._forget_positions()
            deleted = self.segments[:count]
            del self.segments[:count]
            self._note_change()
            for segment in deleted:
                segment.delete(self.discard)
            self.delete_records_before(self.segments[0].base_offset)
            self.producers.remove_snapshots(keep={segment.base_offset for segment in self.segments})
        except OSError as error:
            raise self._fail("delete segments of", error) from error

    def replace_segments(self, sources: Sequence[Segment], put_in_place: Callable[[], Segment]) -> None:
        """Replace the neighbouring segments `sources` by the segment that `put_in_place` returns."""
        self._ensure_online()
        try:
            self._forget_positions()
            start = self.segments.index(sources[0])
            del self.segments[start : start + len(sources)]  # before their files: a flush may be running
            self.segments.insert(start, put_in_place())
            self._note_change()
        except OSError as error:
            raise self._fail("compact", error) from error

    def discard(self, path: Path) -> None:
        """Rename a file of a deleted segment, which takes no time; `unlink_deleted` frees its space."""
        deleted = path.with_name(path.name + DELETED)
        with suppress(FileNotFoundError):
            path.replace(deleted)
            self._deleted.append(deleted)

    @property
    def has_deleted_files(self) -> bool:
        return bool(self._deleted)

    def unlink_deleted(self) -> None:
        """Unlink the files of deleted segments, which may block for long. May run in another thread."""
        try:
            while True:
                self._deleted.pop(0).unlink(missing_ok=True)  # the whole log may be deleted by now
        except IndexError:
            return  # none is left: another thread may have taken the last one
        except OSError as error:
            raise self._fail("unlink deleted segments of", error) from error

    # -- flush and close -----------------------------------------------------------------------

    def flush(self) -> None:
        """Make everything appended so far durable. May run in another thread than the appends."""
        self._flush(self.log_end_offset)
        self.flushed_ms = self.now_ms()

    def _flush(self, end: int) -> None:
        """Make the segments that start before `end` durable, and move the recovery point there."""
        self._ensure_online()
        cuts = self.cuts
        segments = [segment for segment in self.segments if segment.base_offset < end]
        # A segment that ends at the recovery point may have been closed after its last flush: its
        # records are on disk, its indexes perhaps not.
        first = bisect_left(segments, self.recovery_point, key=lambda segment: segment.base_offset) - 1
        for segment in segments[max(0, first) :]:
            try:
                segment.flush()
            except OSError as error:
                self._ensure_online()  # otherwise the log was deleted, or has failed, in the meantime
                # A second fsync does not bring back what a failed one has dropped; but segments that have
                # left the log in the meantime need not be durable.
                if segment in self.segments:
                    raise self._fail("flush", error, harmless=True) from error
        try:
            self.epochs.sync()
            self._sync_name()
        except OSError as error:
            raise self._fail("flush the epochs of", error, harmless=True) from error
        if cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, end)
            self._note_change()

    def _sync_name(self) -> None:
        """Make the name of the log's directory durable, once."""
        if self.has_files and not self._has_durable_name:
            sync_directory(self.directory.parent)
            self._has_durable_name = True

    def flush_closed(self) -> None:
        """Make the closed segments durable, so that recovery has to check only the newest one.

        May run in another thread than the appends.
        """
        self._flush(self.active.base_offset)

    @property
    def has_unflushed_segments(self) -> bool:
        return self.recovery_point < self.active.base_offset

    @property
    def flush_is_due(self) -> bool:
        """Return whether `flush.ms` has passed since the last flush and there is something to flush."""
        waited = self.now_ms() - self.flushed_ms
        return waited >= self.config.flush_ms and self.recovery_point < self.log_end_offset

    @property
    def flush_due_ms(self) -> int | None:
        """Return when the log is to be flushed: at once (0) if it has closed segments to flush.

        None if everything is flushed, if only the system decides when to write it to disk, or if the log is
        offline.
        """
        if self.recovery_point >= self.log_end_offset or self.offline is not None:
            return None
        if self.has_unflushed_segments:
            return 0
        return None if self.config.flush_ms == NEVER else self.flushed_ms + self.config.flush_ms

    def close(self) -> None:
        """Close cleanly: everything is flushed, and opening the log again needs no scan."""
        if self.offline is None:
            try:
                self.active.finish()
                if self.recovery_point < self.log_end_offset:
                    self.flush()
                self.producers.take_snapshot()
                self.unlink_deleted()
            except OSError as error:
                raise self._fail("close", error) from error
        self.release()

    def release(self) -> None:
        """Close the files and write nothing, as a crash would."""
        for segment in self.segments:
            segment.release()

    def retire(self) -> None:
        """Close the files for good: they are about to be deleted, and perhaps created again.

        A compaction in another thread finds its plan stale, and installs nothing.
        """
        self.offline = f"{self.directory} has been deleted"
        self._forget_positions()
        self.release()

    def _ensure_online(self) -> None:
        if self.offline is not None:
            raise LogOffline(self.offline)

    def _fail(self, doing: str, error: OSError, *, harmless: bool = False) -> LogOffline:
        """Take the log offline, unless the call was `harmless` and only lacked a file descriptor."""
        if harmless and error.errno in _NO_DESCRIPTOR:
            logger.warning("could not %s %s: %s", doing, self.directory, error)
            return LogOffline(f"could not {doing} {self.directory} now: {error}")
        self.offline = f"{self.directory} is offline: could not {doing} it: {error}"
        logger.error(self.offline)
        return LogOffline(self.offline)

    def _forget_positions(self) -> None:
        self._positions.clear()
        self.cuts += 1
