"""A run of batches in one file, with its indexes: append at the end, read anywhere, cut off the tail.

Bytes below `size` never change; only the newest segment of a log grows.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from headrace.protocol.batch import (
    HEADER_SIZE,
    NO_TIMESTAMP,
    OFFSET_SIZE,
    BatchHeader,
    read_base_offset,
    read_header,
    read_offset_and_size,
)
from headrace.protocol.compression import Buffer
from headrace.storage.config import LogConfig
from headrace.storage.errors import CorruptIndex, CorruptLog
from headrace.storage.files import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    sync_directory,
    write_all,
)
from headrace.storage.index import MaxTimestamp, OffsetIndex, Position, TimeIndex
from headrace.storage.scan import Scanner
from headrace.storage.txn_index import TxnIndex

_FEW_BATCHES = 16  # walking over so many is quicker than asking the index
_NEARBY = 8 * 1024  # a look-up walks little more than one index interval
T = TypeVar("T")

logger = logging.getLogger(__name__)


class Read(NamedTuple):
    """Whole batches, and the base offset of the one after them if reading them has shown it."""

    data: Buffer
    next_offset: int | None


class Segment:
    """One `.log` file and its indexes. Blocking, and not thread-safe but for `flush`."""

    def __init__(self, directory: Path, base_offset: int, config: LogConfig, *, suffix: str = "") -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.path = directory / file_name(base_offset, LOG + suffix)
        limit = config.segment_index_bytes
        self.offset_index = OffsetIndex(
            directory / file_name(base_offset, OFFSET_INDEX + suffix), base_offset, limit
        )
        self.time_index = TimeIndex(
            directory / file_name(base_offset, TIME_INDEX + suffix), base_offset, limit
        )
        self.txn_index = TxnIndex(directory / file_name(base_offset, TXN_INDEX + suffix))
        self.size = 0
        self.created_ms = 0
        self.sealed = False  # a newer segment exists: this one does not grow any more
        self._interval = config.index_interval_bytes
        self._unindexed = 0  # bytes since the batch that the last index entry points to
        self._max: MaxTimestamp | None = None  # None: not looked up since opening
        self._first_timestamp: int | None = None
        self._trusts_index = False  # the offset index's last entry has been held against the log
        self._descriptor: int | None = None
        self._name_is_durable = False

    @classmethod
    def create(
        cls, directory: Path, base_offset: int, config: LogConfig, *, now_ms: int, suffix: str = ""
    ) -> "Segment":
        """A new, empty segment; its files must not exist."""
        segment = cls(directory, base_offset, config, suffix=suffix)
        segment._descriptor = os.open(segment.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            segment.offset_index.reset()
            segment.time_index.reset()
        except OSError:
            segment.delete()  # so that it can be tried again
            raise
        segment._max = MaxTimestamp(NO_TIMESTAMP, base_offset)
        segment.created_ms = now_ms
        return segment

    @classmethod
    def open(cls, directory: Path, base_offset: int, config: LogConfig, *, suffix: str = "") -> "Segment":
        """An existing segment, trusted as it is: one `stat`, no scan. `resume` it before appending."""
        segment = cls(directory, base_offset, config, suffix=suffix)
        status = segment.path.stat()
        segment.size = status.st_size
        segment.created_ms = int(status.st_mtime * 1000)
        return segment

    @property
    def descriptor(self) -> int:
        """The open file; opened when first needed, as most segments of a large log are never read."""
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDWR)
        return self._descriptor

    # -- append --------------------------------------------------------------------------------

    def append(self, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write `data`, the batches of `headers` in order, and index them."""
        write_all(self.descriptor, data, self.size)
        position = self.size
        for header in headers:
            self.index(position, header)
            position += header.size
        self.size = position

    def index(self, position: int, header: BatchHeader) -> None:
        """Account for a batch at `position`: the one rule by which indexes are built and rebuilt."""
        if self._first_timestamp is None and position == 0:
            self._first_timestamp = header.max_timestamp
        if self._max is None or header.max_timestamp > self._max.timestamp:
            self._max = MaxTimestamp(header.max_timestamp, header.last_offset)
        if self._unindexed > self._interval:
            self.offset_index.append(header.last_offset, position)
            self.time_index.maybe_append(*self._max)
            self._unindexed = 0
        self._unindexed += header.size

    def has_room(self, size: int, last_offset: int, config: LogConfig) -> bool:
        return (
            self.size + size <= config.segment_bytes
            and not self.offset_index.is_full
            and not self.time_index.is_full
            and self.offset_index.can_hold(last_offset)
        )

    def age_ms(self, now_ms: int, timestamp: int) -> int:
        """How long this segment has been collecting, by the records' clock where they have one."""
        first = self.first_timestamp
        return now_ms - self.created_ms if first < 0 else timestamp - first

    # -- what it holds -------------------------------------------------------------------------

    @property
    def first_timestamp(self) -> int:
        """The first batch's largest timestamp, or -1."""
        if self._first_timestamp is None and self.size:
            _, header = next(self.headers(chunk=_NEARBY))
            self._first_timestamp = header.max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    @property
    def max_timestamp(self) -> MaxTimestamp:
        """The largest timestamp and the last offset of the first batch that has it; -1 if empty."""
        if self._max is None:
            self._max = self._reading_index(self._last_max_timestamp)
        return self._max

    @property
    def youngest_ms(self) -> int:
        """The time of its youngest record; of its own making if its records have no times."""
        youngest = self.max_timestamp.timestamp
        return youngest if youngest >= 0 else self.created_ms

    def headers(self, start: int = 0, *, chunk: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Position and header of every batch from the one at byte `start` on."""
        return self.scanner(chunk=chunk).headers(start)

    def scanner(self, *, chunk: int | None = None) -> Scanner:
        options = {} if chunk is None else {"chunk": chunk}
        return Scanner(self.path, self.descriptor, self.size, **options)

    @contextmanager
    def private_scanner(self) -> Iterator[Scanner]:
        """A scanner for another thread: with a descriptor of its own, it outlives the segment."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            yield Scanner(self.path, descriptor, self.size)
        finally:
            os.close(descriptor)

    # -- read ----------------------------------------------------------------------------------

    def position_of(self, offset: int) -> int:
        """Where the first batch that reaches `offset` starts; the segment's size if none does."""
        if offset <= self.base_offset:
            return 0
        start = self._reading_index(lambda: self._entry_at_or_before(offset))
        for position, header in self.headers(start.position, chunk=_NEARBY):
            if header.last_offset >= offset:
                return position
        return self.size

    def read(self, start: int, end: int, max_bytes: int, *, at_least_one: bool) -> Read:
        """Whole batches from byte `start` on, up to `end`, where a batch ends, and to `max_bytes`.

        The first may exceed `max_bytes` if `at_least_one` is set: a reader must be able to go on.
        """
        if end - start <= max_bytes:
            return Read(self._pread(end - start, start), None)
        data = self._pread(min(max_bytes + OFFSET_SIZE, end - start), start)
        cut = self._whole_batches(memoryview(data)[:max_bytes], start)
        if cut == 0 and at_least_one:
            _, size = read_offset_and_size(self._pread(HEADER_SIZE, start))
            if not HEADER_SIZE <= size <= end - start:
                raise CorruptLog(self.path, start, f"batch claims {size} bytes, {end - start} are left")
            return Read(self._pread(size, start), None)
        next_offset = read_base_offset(data, cut) if cut + OFFSET_SIZE <= len(data) else None
        return Read(memoryview(data)[:cut] if cut else b"", next_offset)  # an empty view would keep `data`

    def _whole_batches(self, data: memoryview, start: int) -> int:
        """How many bytes of `data`, read at byte `start`, are whole batches.

        A walk finds out, if there are few; if there are many the index leads near to the last one.
        """
        position, ended = self._walk(data, start, 0, steps=_FEW_BATCHES)
        if ended:
            return position
        entry = self._reading_index(lambda: self.offset_index.before_position(start + len(data)))
        position = entry.position - start
        if not 0 < position <= len(data) - HEADER_SIZE:
            position = 0
        elif read_header(data, position).last_offset != entry.offset:
            logger.warning("rebuilding the indexes of %s: they do not fit the log", self.path)
            self.rebuild_indexes()
            position = 0
        return self._walk(data, start, position, steps=len(data))[0]

    def _walk(self, data: memoryview, start: int, position: int, *, steps: int) -> tuple[int, bool]:
        """Where `steps` batches from `position` on lead to, and whether there are no more whole ones."""
        last = len(data) - HEADER_SIZE
        for _ in range(steps):
            if position > last:
                return position, True
            _, size = read_offset_and_size(data, position)
            if size < HEADER_SIZE:
                raise CorruptLog(self.path, start + position, f"batch claims {size} bytes")
            if position + size > len(data):
                return position, True
            position += size
        return position, position > last

    def base_offset_at(self, position: int) -> int:
        """The base offset of the batch at byte `position`."""
        offset, _ = read_offset_and_size(self._pread(HEADER_SIZE, position))
        return offset

    def position_of_timestamp(self, timestamp: int) -> int:
        """Where the first batch with a record at `timestamp` or later starts; the size if none does."""
        start = self._reading_index(lambda: self._start_for_timestamp(timestamp))
        for position, header in self.headers(start, chunk=_NEARBY):
            if header.max_timestamp >= timestamp:
                return position
        return self.size

    def _last_max_timestamp(self) -> MaxTimestamp:
        last = self.time_index.last()
        if last is None:
            return MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        self._position_of_entry(last)
        return last

    def _start_for_timestamp(self, timestamp: int) -> int:
        entry = self.time_index.at_or_before(timestamp)
        return 0 if entry is None else self._position_of_entry(entry)

    def _position_of_entry(self, entry: MaxTimestamp) -> int:
        """Where the batch starts that `entry` was made for; CorruptIndex if there is no such batch."""
        position = self.position_of(entry.offset)
        _, header = next(self.headers(position, chunk=_NEARBY), (0, None))
        if header is None or header.max_timestamp != entry.timestamp or header.base_offset > entry.offset:
            raise CorruptIndex(f"{self.time_index.path} has {entry}, the log has not")
        return position

    def _pread(self, size: int, position: int) -> bytes:
        data = os.pread(self.descriptor, size, position)
        if len(data) < size:
            raise CorruptLog(self.path, position + len(data), f"{size - len(data)} bytes are missing")
        return data

    # -- indexes -------------------------------------------------------------------------------

    def _entry_at_or_before(self, offset: int) -> Position:
        if not self._trusts_index:  # in one full of garbage a look-up may find nothing, and notice nothing
            self._checked_last()
            self._trusts_index = True
        return self._checked(self.offset_index.at_or_before(offset))

    def _checked_last(self) -> Position | None:
        last = self.offset_index.last()
        if last is not None and last.position == 0:  # no entry is ever made for the first batch
            raise CorruptIndex(f"{self.offset_index.path} has {last}: it is filled with zeros")
        return None if last is None else self._checked(last)

    def _checked(self, entry: Position) -> Position:
        """The entry, if the batch it points to agrees: a damaged index must not lead a reader astray."""
        if entry.position == 0 and entry.offset == self.base_offset:
            return entry
        if not 0 <= entry.position < self.size:
            raise CorruptIndex(f"{self.offset_index.path} has {entry}, the log has {self.size} bytes")
        try:
            _, header = next(self.headers(entry.position, chunk=_NEARBY))
        except CorruptLog as error:
            raise CorruptIndex(f"{self.offset_index.path} has {entry}, but {error}") from None
        if header.last_offset != entry.offset:
            raise CorruptIndex(
                f"{self.offset_index.path} has {entry}, the batch there ends at {header.last_offset}"
            )
        return entry

    def _reading_index(self, look_up: Callable[[], T]) -> T:
        try:
            return look_up()
        except CorruptIndex as error:
            logger.warning("rebuilding the indexes of %s: %s", self.path, error)
            self.rebuild_indexes()
            return look_up()

    def rebuild_indexes(self) -> None:
        """Make both indexes anew from the log: entry for entry what appending had made."""
        self.start_indexes_over()
        for position, header in self.headers():
            self.index(position, header)
        if self.sealed:
            self.seal()

    def start_indexes_over(self) -> None:
        """Forget all that is known of the content; `index` is then called batch by batch."""
        self.offset_index.reset()
        self.time_index.reset()
        self._unindexed = 0
        self._max = MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None

    # -- life ----------------------------------------------------------------------------------

    def resume(self) -> int:
        """Make an opened segment ready for appends; return the offset after its last record.

        Reads only what follows the last index entry. The entry that closing added to the time index
        goes again, so that the index stays what uninterrupted appending would have made.
        """
        try:
            last = self._checked_last()
            entry = last or Position(self.base_offset, 0)
            self._last_max_timestamp()  # checks the index before anything is taken off it
            self.time_index.truncate_to(last.offset + 1 if last else self.base_offset)
            self._max = self._last_max_timestamp()
        except CorruptIndex as error:
            logger.warning("rebuilding the indexes of %s: %s", self.path, error)
            self.rebuild_indexes()
            last = self.offset_index.last()
            entry = last or Position(self.base_offset, 0)
        self.sealed = False
        self._unindexed = self.size - entry.position
        next_offset = self.base_offset
        for _, header in self.headers(entry.position, chunk=_NEARBY):
            next_offset = header.next_offset
            if header.max_timestamp > self.max_timestamp.timestamp:
                self._max = MaxTimestamp(header.max_timestamp, header.last_offset)
        return next_offset

    def truncate_to(self, position: int, offset: int) -> None:
        """Cut the segment at byte `position`, where the batch that reaches `offset` starts."""
        # Index first. If we die between the two, a short index is merely slower;
        # an index that points past the end of the data reads as corruption.
        self._reading_index(lambda: self.offset_index.truncate_to(offset))
        self._reading_index(lambda: self.time_index.truncate_to(offset))
        self.txn_index.truncate_to(offset)
        self.cut(position)
        if position == 0:
            self._first_timestamp = None

    def cut(self, position: int) -> None:
        """Cut the file, and only the file, at byte `position`."""
        os.truncate(self.descriptor, position)
        self.size = position

    def seal(self) -> None:
        """No more appends: write out the indexes, the time index with its final entry."""
        self.sealed = True
        self.time_index.maybe_append(*self.max_timestamp)
        self.offset_index.write_out()
        self.time_index.write_out()

    def flush(self) -> None:
        """Bring everything written so far to the disk. May run in another thread than the appends.

        The indexes of a segment that still grows are left out: after a crash they are rebuilt.
        """
        own = self._descriptor  # the segment may be deleted meanwhile
        descriptor = os.open(self.path, os.O_RDONLY) if own is None else os.dup(own)
        try:
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        if self.sealed:
            self.offset_index.sync()
            self.time_index.sync()
            self.txn_index.sync()
        if not self._name_is_durable:
            sync_directory(self.directory)
            self._name_is_durable = True

    def finish(self) -> None:
        """Leave the indexes as a clean stop should; missing ones are made again first."""
        if self.size:
            self._reading_index(self.seal)

    def release(self) -> None:
        """Let go of the open file and write nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def delete(self) -> None:
        """Remove the files, the log first: an index without a log is cleaned away by the next opening."""
        self.release()
        for suffix in reversed(SEGMENT_SUFFIXES):
            (self.directory / file_name(self.base_offset, suffix)).unlink(missing_ok=True)
