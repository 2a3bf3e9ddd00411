"""One partition's log: appends, truncation and deletion. `log_files` has its files, `log_reads` its reads.

A log is used from one thread, except that `flush` and `unlink_deleted` may run in another, and that a
compaction copies closed segments in another. All calls block on the disk; appends go to the page cache and
return.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from headrace.protocol.batch import BatchHeader, TimestampType, assign_append_time, assign_offset, read_header
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.ids import LeaderEpoch
from headrace.storage.append.batches import Batch, read_batches, writable
from headrace.storage.append.inspection import PreparedBatch, prepare
from headrace.storage.append.validation import check_expected_offset
from headrace.storage.checks.damage import Damage
from headrace.storage.config import MAX_INT32
from headrace.storage.errors import OffsetOutOfRange, RecordListTooLarge
from headrace.storage.log_reads import ReadableLog
from headrace.storage.replay import replay, take_in
from headrace.storage.segment import Segment

NO_APPEND_TIME = -1


class Appended(NamedTuple):
    """The offsets of appended records, as a Produce response has them."""

    base_offset: int
    last_offset: int
    log_append_time_ms: int  # -1: the records keep the producer's timestamps
    duplicate: bool = False  # of an earlier append; nothing was written


class Log(ReadableLog):
    """An append-only sequence of batches between `log_start_offset` and `log_end_offset`.

    `headrace.storage.recovery.open_log` creates it. An OSError in any call takes the log offline: that call
    and all later ones raise LogOffline, and other logs are not affected. If the process only has too many
    open files, and the call has changed nothing, only that call raises LogOffline.
    """

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
            self.producers.ensure_room(header.producer_id, self.now_ms(), self.config)
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

    def append_as_follower(self, data: Buffer, *, leader_epoch: int = MAX_INT32) -> Appended:
        """Append batches from the leader with their offsets and epochs; compaction may have left gaps.

        Their epochs must not decrease, nor be later than `leader_epoch`, the current one: no checksum covers
        them.
        """
        self._ensure_online()
        view = memoryview(data)
        batches = read_batches(view)
        next_offset, epoch = self.log_end_offset, self.epochs.at(self.log_end_offset - 1)
        for header, _ in batches:
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise InvalidRecord(
                    f"a batch at offsets {header.base_offset} to {header.last_offset} "
                    f"cannot follow offset {next_offset - 1} (INVALID_RECORD)"
                )
            if not epoch <= header.leader_epoch <= leader_epoch:
                raise InvalidRecord(
                    f"a batch at offset {header.base_offset} names leader epoch {header.leader_epoch}, "
                    f"the current one is {leader_epoch}, that of the batch before {epoch} (INVALID_RECORD)"
                )
            next_offset, epoch = header.next_offset, LeaderEpoch(header.leader_epoch)
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
            # The file is open from here on: a failure may leave a part of the batches in it.
            begun = self.active.file.descriptor >= 0
            self.active.append(view, [batch.header for batch in batches])
            if first.leader_epoch < self.epochs.latest:  # which has written nothing
                self.epochs.assign(first.leader_epoch, first.base_offset)
            if self.epochs.is_unwritten:
                self.epochs.write()
            now_ms = self.now_ms()
            for header, marker in batches:
                aborted = take_in(self._derived, header, marker, now_ms)
                if aborted is not None:
                    self.active.txn_index.append(aborted)
            self.producers.trim(self.config.max_producer_ids)
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

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that contains `offset` or follows it.

        Of batches [10-10] [11-30] [31-99], truncate_to(31) keeps [10-10] [11-30], and so
        does truncate_to(35): a batch is one checksummed unit and is never split.
        """
        self._ensure_online()
        if offset >= self.log_end_offset:
            return
        if offset < self.segments.local_start_offset:
            self.truncate_fully(offset)
            return
        try:
            self._forget(self.segments.starting_with(offset))
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
            self._forget(self.segments)
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
            deleted = self.segments[:count]
            self._forget(deleted)
            del self.segments[:count]
            self._note_change()
            for segment in deleted:
                segment.delete(self.discard)
            self.delete_records_before(self.segments.local_start_offset)
            self.producers.remove_snapshots(keep={segment.base_offset for segment in self.segments})
        except OSError as error:
            raise self._fail("delete segments of", error) from error

    def note_damage(self, damage: Damage) -> None:
        """Refuse reads of damaged records from now on; compactions and seeds under way become stale."""
        base_offset = damage.base_offset
        if base_offset == self.active.base_offset:
            self.roll()
        self._forget(())
        after = self.segments[self.segments.number_of(base_offset) + 1]
        self.damaged[base_offset] = damage._replace(end_offset=after.base_offset)

    def replace_segments(self, sources: Sequence[Segment], put_in_place: Callable[[], Segment]) -> None:
        """Replace the neighbouring segments `sources` by the segment that `put_in_place` returns."""
        self._ensure_online()
        try:
            self._forget(sources)
            start = self.segments.index(sources[0])
            del self.segments[start : start + len(sources)]  # before their files: a flush may be running
            self.segments.insert(start, put_in_place())
            self._note_change()
        except OSError as error:
            raise self._fail("compact", error) from error
