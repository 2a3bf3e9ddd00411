"""A segment: batches in one file, and its indexes.

Bytes below `size` never change; only the newest segment of a log grows. The file of a closed segment may be
linked into the log of another broker (`seed.py`); it is copied before it is truncated or grows.
"""

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
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
from headrace.storage import page_cache
from headrace.storage.checks.scan import CHUNK, PrivateFile, Scanner
from headrace.storage.config import LogConfig
from headrace.storage.errors import CorruptIndex, CorruptLog
from headrace.storage.files import (
    LOG,
    OFFSET_INDEX,
    SEGMENT_SUFFIXES,
    TIME_INDEX,
    TXN_INDEX,
    file_name,
    make_private,
    sync_directory,
    write_all,
)
from headrace.storage.index import MaxTimestamp, OffsetIndex, Position, TimeIndex
from headrace.storage.open_files import OpenFiles, SegmentFile
from headrace.storage.txn_index import TxnIndex

_FEW_BATCHES = 16  # a scan of so many is faster than an index lookup
_NEARBY = 8 * 1024  # a lookup scans little more than one index interval
T = TypeVar("T")

logger = logging.getLogger(__name__)


def unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


class Read(NamedTuple):
    """Whole batches, and the base offset of the next one if the read included it."""

    data: Buffer
    next_offset: int | None


class Segment:
    """One `.log` file and its indexes. Blocking, and not thread-safe except `flush`."""

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        suffix: str = "",
        files: OpenFiles | None = None,
    ) -> None:
        """`files` bounds the open files of several segments; without it the file stays open."""
        self.directory = directory
        self.base_offset = base_offset
        files = OpenFiles() if files is None else files
        self.file = SegmentFile(directory / file_name(base_offset, LOG + suffix), files)
        limit = config.segment_index_bytes
        self.offset_index = OffsetIndex(
            directory, file_name(base_offset, OFFSET_INDEX + suffix), base_offset, limit
        )
        self.time_index = TimeIndex(
            directory, file_name(base_offset, TIME_INDEX + suffix), base_offset, limit
        )
        self.txn_index = TxnIndex(directory, file_name(base_offset, TXN_INDEX + suffix))
        self.size = 0
        self.created_ms = 0
        self.modified_ns = 0  # when it was opened
        self.sealed = False  # a newer segment exists: this one is complete
        self._interval = config.index_interval_bytes
        self._unindexed = 0  # bytes since the batch that the last index entry points to
        self._max: MaxTimestamp | None = None  # None: not read since opening
        self._first_timestamp: int | None = None
        self._trusts_index = False  # the offset index's last entry has been checked
        self._name_is_durable = False

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
        files: OpenFiles | None = None,
    ) -> "Segment":
        """Create an empty segment; its files must not exist."""
        segment = cls.planned(directory, base_offset, config, now_ms=now_ms, suffix=suffix, files=files)
        segment.create_files()
        return segment

    @classmethod
    def planned(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        now_ms: int,
        suffix: str = "",
        files: OpenFiles | None = None,
    ) -> "Segment":
        """Return an empty segment without files; `create_files` is called before the first append."""
        segment = cls(directory, base_offset, config, suffix=suffix, files=files)
        segment.offset_index.start_empty()
        segment.time_index.start_empty()
        segment._max = MaxTimestamp(NO_TIMESTAMP, base_offset)
        segment.created_ms = now_ms
        return segment

    def create_files(self) -> None:
        """Create the empty files of a segment that has none."""
        self.file.create()
        try:
            self.offset_index.reset()
            self.time_index.reset()
        except OSError:
            self.delete()  # so that it can be retried
            raise

    @classmethod
    def open(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        suffix: str = "",
        files: OpenFiles | None = None,
    ) -> "Segment":
        """Open an existing segment without a check: one `stat`, no scan. Call `resume` before appending."""
        segment = cls(directory, base_offset, config, suffix=suffix, files=files)
        status = segment.path.stat()
        segment.size = status.st_size
        segment.created_ms = int(status.st_mtime * 1000)
        segment.modified_ns = status.st_mtime_ns
        return segment

    @property
    def path(self) -> Path:
        return self.file.path

    def append(self, data: Buffer, headers: Sequence[BatchHeader]) -> None:
        """Write `data`, the batches of `headers` in order, and index them."""
        write_all(self.file.descriptor, data, self.size)
        self.file.has_unflushed = True
        position = self.size
        for header in headers:
            self.index(position, header)
            position += header.size
        self.size = position

    def index(self, position: int, header: BatchHeader) -> None:
        """Add the batch at `position` to the indexes, during an append or a rebuild."""
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
        """Return the age of the segment, by the records' timestamps if they have any."""
        first = self.first_timestamp
        return now_ms - self.created_ms if first < 0 else timestamp - first

    @property
    def first_timestamp(self) -> int:
        """Return the first batch's max timestamp, or -1."""
        if self._first_timestamp is None and self.size:
            _, header = next(self.headers(chunk=_NEARBY))
            self._first_timestamp = header.max_timestamp
        return NO_TIMESTAMP if self._first_timestamp is None else self._first_timestamp

    @property
    def max_timestamp(self) -> MaxTimestamp:
        """Return the largest timestamp and the last offset of the first batch that has it; -1 if empty."""
        if self._max is None:
            self._max = self._reading_index(self._last_max_timestamp)
        return self._max

    @property
    def youngest_ms(self) -> int:
        """Return the largest timestamp; the creation time if the records have no timestamps."""
        youngest = self.max_timestamp.timestamp
        return youngest if youngest >= 0 else self.created_ms

    def headers(
        self, start: int = 0, *, chunk: int = CHUNK, cached_only: bool = False
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the position and header of every batch from the one at byte `start` on."""
        return Scanner(self.file, self.size, chunk=chunk, cached_only=cached_only).headers(start)

    def scanner(self) -> Scanner:
        return Scanner(self.file, self.size)

    @contextmanager
    def private_scanner(self) -> Iterator[Scanner]:
        """Return a scanner for another thread; it stays valid when the segment is deleted."""
        with PrivateFile(self.path, os.open(self.path, os.O_RDONLY)) as file:
            yield Scanner(file, self.size)

    def position_of(self, offset: int, *, cached_only: bool = False) -> int:
        """Return the position of the first batch that reaches `offset`; the segment's size if none does."""
        if offset <= self.base_offset:
            return 0
        start = self._reading_index(lambda: self._entry_at_or_before(offset, cached_only))
        for position, header in self.headers(start.position, chunk=_NEARBY, cached_only=cached_only):
            if header.last_offset >= offset:
                return position
        return self.size

    def read(
        self, start: int, end: int, max_bytes: int, *, at_least_one: bool, cached_only: bool = False
    ) -> Read:
        """Return at most `max_bytes` of whole batches from byte `start` to `end`, where a batch ends.

        The first may exceed `max_bytes` if `at_least_one` is set: a consumer must be able to make progress.
        """
        if end - start <= max_bytes:
            return Read(self._pread(end - start, start, cached_only), None)
        data = self._pread(min(max_bytes + OFFSET_SIZE, end - start), start, cached_only)
        cut = self._whole_batches(memoryview(data)[:max_bytes], start, cached_only)
        if cut == 0 and at_least_one:
            _, size = read_offset_and_size(self._pread(HEADER_SIZE, start, cached_only))
            if not HEADER_SIZE <= size <= end - start:
                raise CorruptLog(self.path, start, f"batch claims {size} bytes, {end - start} are left")
            return Read(self._pread(size, start, cached_only), None)
        next_offset = read_base_offset(data, cut) if cut + OFFSET_SIZE <= len(data) else None
        return Read(memoryview(data)[:cut] if cut else b"", next_offset)  # an empty view would keep `data`

    def _whole_batches(self, data: memoryview, start: int, cached_only: bool) -> int:
        """Return how many bytes of `data`, read at byte `start`, are whole batches.

        A scan finds out if there are few; if there are many, the index leads near the last one.
        """
        position, ended = self._walk(data, start, 0, steps=_FEW_BATCHES)
        if ended:
            return position
        end = start + len(data)
        entry = self._reading_index(lambda: self.offset_index.before_position(end, cached_only=cached_only))
        position = entry.position - start
        if not 0 < position <= len(data) - HEADER_SIZE:
            position = 0
        elif read_header(data, position).last_offset != entry.offset:
            logger.warning("rebuilding the indexes of %s: they do not match the log", self.path)
            self.rebuild_indexes()
            position = 0
        return self._walk(data, start, position, steps=len(data))[0]

    def _walk(self, data: memoryview, start: int, position: int, *, steps: int) -> tuple[int, bool]:
        """Return the position after `steps` batches, and whether no whole batch follows."""
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

    def base_offset_at(self, position: int, *, cached_only: bool = False) -> int:
        """Return the base offset of the batch at byte `position`."""
        offset, _ = read_offset_and_size(self._pread(HEADER_SIZE, position, cached_only))
        return offset

    def position_of_timestamp(self, timestamp: int) -> int:
        """Return the position of the first batch with a record at `timestamp` or later; the size if none."""
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
        """Return the position of the batch of `entry`; raise CorruptIndex if there is no such batch."""
        position = self.position_of(entry.offset)
        _, header = next(self.headers(position, chunk=_NEARBY), (0, None))
        if header is None or header.max_timestamp != entry.timestamp or header.base_offset > entry.offset:
            raise CorruptIndex(f"{self.time_index.path} has {entry}, which is not in the log")
        return position

    def _pread(self, size: int, position: int, cached_only: bool) -> Buffer:
        data = page_cache.pread(self.file.path, self.file.descriptor, size, position, cached_only=cached_only)
        if len(data) < size:
            raise CorruptLog(self.path, position + len(data), f"{size - len(data)} bytes are missing")
        return data

    def _entry_at_or_before(self, offset: int, cached_only: bool) -> Position:
        if not self._trusts_index:  # a lookup alone may not notice that an index is garbage
            self._checked_last(cached_only)
            self._trusts_index = True
        return self._checked(self.offset_index.at_or_before(offset, cached_only=cached_only), cached_only)

    def _checked_last(self, cached_only: bool = False) -> Position | None:
        last = self.offset_index.last(cached_only=cached_only)
        if last is not None and last.position == 0:  # the first batch never has an entry
            raise CorruptIndex(f"{self.offset_index.path} has {last}: it is filled with zeros")
        return None if last is None else self._checked(last, cached_only)

    def _checked(self, entry: Position, cached_only: bool) -> Position:
        """Return the entry if it matches the batch that it points to; raise CorruptIndex otherwise."""
        if entry.position == 0 and entry.offset == self.base_offset:
            return entry
        if not 0 <= entry.position < self.size:
            raise CorruptIndex(f"{self.offset_index.path} has {entry}, the log has {self.size} bytes")
        try:
            _, header = next(self.headers(entry.position, chunk=_NEARBY, cached_only=cached_only))
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
        """Rebuild both indexes from the log: their entries are the same as after the appends."""
        # A read with `cached_only` also waits here: half an index would be taken for a whole one.
        self.start_indexes_over()
        for position, header in self.headers():
            self.index(position, header)
        if self.sealed:
            self.seal()

    def start_indexes_over(self) -> None:
        """Remove all index entries; the caller then calls `index` for each batch."""
        self.offset_index.reset()
        self.time_index.reset()
        self._unindexed = 0
        self._max = MaxTimestamp(NO_TIMESTAMP, self.base_offset)
        self._first_timestamp = None

    def resume(self) -> int:
        """Prepare an opened segment for appends; return its next offset.

        Only batches after the last index entry are read. The entry that closing has added to the time index
        is removed, so that the index is the same as without the restart.
        """
        self._make_private(self.size)
        try:
            last = self._checked_last()
            entry = last or Position(self.base_offset, 0)
            self._last_max_timestamp()  # checks the index before an entry is removed
            self.time_index.forget_from(last.offset + 1 if last else self.base_offset)
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
        """Truncate the segment at byte `position`, where the batch that reaches `offset` starts."""
        # Index first. After a crash between the two, a short index is merely slower;
        # an index that points past the end of the data looks like corruption.
        self._reading_index(lambda: self.offset_index.truncate_to(offset))
        self._reading_index(lambda: self.time_index.truncate_to(offset))
        self.txn_index.truncate_to(offset)
        self.cut(position)
        if position == 0:
            self._first_timestamp = None

    def cut(self, position: int) -> None:
        """Truncate the file, and only the file, at byte `position`."""
        self._make_private(position)
        os.truncate(self.file.descriptor, position)
        self.size = position

    def _make_private(self, size: int) -> None:
        """Copy the first `size` bytes if the file is linked into another log, which must not change."""
        if make_private(self.path, size):
            logger.info("copied %d bytes of %s, which is linked into another log", size, self.path)
            self.release()

    def cut_back(self, position: int) -> None:
        """Truncate a partial append; if even that fails, recovery does it."""
        with suppress(OSError):
            os.truncate(self.path, position)

    def seal(self) -> None:
        """Complete the segment: write its indexes, the time index with its final entry."""
        self.sealed = True
        self.time_index.maybe_append(*self.max_timestamp)
        self.offset_index.write_out()
        self.time_index.write_out()

    def flush(self) -> None:
        """Make everything written so far durable. May run in another thread than the appends.

        The indexes of the active segment are not flushed: after a crash they are rebuilt.
        """
        self.file.sync()
        if self.sealed:
            self.offset_index.sync()
            self.time_index.sync()
            self.txn_index.sync()
        if not self._name_is_durable:
            sync_directory(self.directory)
            self._name_is_durable = True

    def finish(self) -> None:
        """Complete the indexes for a clean shutdown; missing ones are rebuilt first."""
        if self.size:
            self._reading_index(self.seal)
        else:
            self.offset_index.write_out()
            self.time_index.write_out()

    def release(self) -> None:
        """Close the file and write nothing."""
        self.file.close()

    def delete(self, remove: Callable[[Path], None] = unlink) -> None:
        """Remove the files, the log first: opening the log again removes an index without a log."""
        self.release()
        for suffix in reversed(SEGMENT_SUFFIXES):
            remove(self.directory / file_name(self.base_offset, suffix))
