"""The two sparse indexes of a segment: offset to position, and timestamp to offset.

Both are files of fixed-size entries in ascending order. New entries are collected in memory and written to
the file a page at a time, on a roll and on a clean close. Losing them costs nothing: after a crash the index
is rebuilt from the log. Entries are read with `pread`, not through a memory map: a disk error under a map
kills the process, under `pread` it raises an exception.
"""

import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import ClassVar, NamedTuple

from headrace.storage import page_cache
from headrace.storage.config import MAX_INT32
from headrace.storage.errors import CorruptIndex
from headrace.storage.files import write_all
from headrace.system.system_calls import sync_data

_PAGE_ENTRIES = 512  # entries per read, and the most that are collected in memory


class Position(NamedTuple):
    """The batch that ends with `offset` starts at byte `position`."""

    offset: int
    position: int


class MaxTimestamp(NamedTuple):
    """The largest timestamp so far; the batch that ends with `offset` is the first one that has it."""

    timestamp: int
    offset: int


class IndexFile:
    """Sorted fixed-size entries, interpreted by a subclass. Not thread-safe."""

    entry: ClassVar[Struct]

    def __init__(self, directory: Path, name: str, base_offset: int, max_bytes: int) -> None:
        self._directory = directory  # not the path: a broker has many segments, and uses few of their indexes
        self._name = name
        self.base_offset = base_offset
        self.max_entries = max_bytes // self.entry.size
        self._stored: int | None = None  # entries in the file; None until they are first needed
        self._has_excess = False  # the file is longer than `_stored`
        self._tail = bytearray()
        self._page: tuple[int, bytes] | None = None  # the page that was read last

    @property
    def path(self) -> Path:
        return self._directory / self._name

    def __len__(self) -> int:
        return self._stored_entries() + len(self._tail) // self.entry.size

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return (self._at(number) for number in range(len(self)))

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_entries

    def start_empty(self) -> None:
        """Have no entries, and no file before `reset` creates it."""
        self._stored = 0

    def reset(self) -> None:
        """Remove all entries; a missing file is created, and another one is truncated by `write_out`."""
        self._tail.clear()
        self._page = None
        try:
            self._has_excess = self.path.stat().st_size > 0
        except FileNotFoundError:
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644))
            self._has_excess = False
        self._stored = 0

    def write_out(self) -> None:
        """Write the entries in memory to the file, and truncate it after them."""
        if not self._tail and not self._has_excess:
            return
        stored = self._stored_entries()
        with self.path.open("r+b", buffering=0) as file:
            write_all(file.fileno(), self._tail, stored * self.entry.size)
            self._stored = stored + len(self._tail) // self.entry.size
            if self._has_excess:
                file.truncate(self._stored * self.entry.size)
                self._has_excess = False
        self._tail.clear()
        self._page = None

    def sync(self) -> None:
        """Make the file durable; a missing one is rebuilt when it is needed."""
        with suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            sync_data(file.fileno())

    def truncate_entries(self, count: int) -> None:
        """Keep the first `count` entries."""
        stored = self._stored_entries()
        del self._tail[max(0, count - stored) * self.entry.size :]
        if count < stored:
            os.truncate(self.path, count * self.entry.size)
            self._stored, self._has_excess = count, False
            self._page = None

    def forget_entries(self, count: int) -> None:
        """Keep the first `count` entries, and let the file keep the others until the next `write_out`.

        For a log that is opened and not written to: to truncate a file that was written recently, ext4 waits
        for the disk. After a crash the index is rebuilt.
        """
        if self._tail:
            self.truncate_entries(count)
        elif count < self._stored_entries():
            self._stored, self._has_excess = count, True
            self._page = None

    def _append(self, first: int, second: int) -> None:
        self._tail += self.entry.pack(first, second)
        if len(self._tail) >= _PAGE_ENTRIES * self.entry.size:
            self.write_out()

    def _floor(self, value: int, field: int, *, cached_only: bool = False) -> int:
        """Return the number of the last entry whose `field` is at most `value`, or -1.

        Most lookups are near the end of a log, or near the previous lookup, and need no read; the
        others need one read for each step of a binary search over the file's pages, which raises NotCached
        with `cached_only` instead of waiting for the disk.
        """
        stored = self._stored_entries()
        if self._tail and self._unpack(self._tail, 0)[field] <= value:
            return stored + self._floor_in(self._tail, value, field)
        if self._page is not None and self._covers(self._page[1], value, field):
            return self._page[0] * _PAGE_ENTRIES + self._floor_in(self._page[1], value, field)
        pages = range(-(-stored // _PAGE_ENTRIES))

        def first_of(page: int) -> int:
            return self._at(page * _PAGE_ENTRIES, cached_only=cached_only)[field]

        page = bisect_right(pages, value, key=first_of) - 1
        if page < 0:
            return -1
        entries = self._read_page(page, cached_only=cached_only)
        return page * _PAGE_ENTRIES + self._floor_in(entries, value, field)

    def _covers(self, entries: bytes, value: int, field: int) -> bool:
        last = len(entries) // self.entry.size - 1
        return self._unpack(entries, 0)[field] <= value < self._unpack(entries, last)[field]

    def _floor_in(self, entries: bytes | bytearray, value: int, field: int) -> int:
        numbers = range(len(entries) // self.entry.size)
        return bisect_right(numbers, value, key=lambda number: self._unpack(entries, number)[field]) - 1

    def _at(self, number: int, *, cached_only: bool = False) -> tuple[int, int]:
        stored = self._stored_entries()
        if number >= stored:
            return self._unpack(self._tail, number - stored)
        page, place = divmod(number, _PAGE_ENTRIES)
        return self._unpack(self._read_page(page, cached_only=cached_only), place)

    def _unpack(self, entries: bytes | bytearray, number: int) -> tuple[int, int]:
        first, second = self.entry.unpack_from(entries, number * self.entry.size)
        return first, second

    def _read_page(self, page: int, *, cached_only: bool) -> bytes:
        if self._page is None or self._page[0] != page:
            start = page * _PAGE_ENTRIES
            size = min(_PAGE_ENTRIES, self._stored_entries() - start) * self.entry.size
            try:
                with self.path.open("rb", buffering=0) as file:
                    position = start * self.entry.size
                    data = page_cache.pread(self.path, file.fileno(), size, position, cached_only=cached_only)
            except FileNotFoundError:
                raise CorruptIndex(f"{self.path} is missing") from None
            if len(data) != size:
                raise CorruptIndex(f"{self.path} has become shorter")
            self._page = page, bytes(data)
        return self._page[1]

    def _stored_entries(self) -> int:
        if self._stored is None:
            try:
                size = self.path.stat().st_size
            except FileNotFoundError:
                raise CorruptIndex(f"{self.path} is missing") from None
            if size % self.entry.size:
                raise CorruptIndex(f"{self.path} has {size} bytes, not a multiple of {self.entry.size}")
            self._stored = size // self.entry.size
        return self._stored


class OffsetIndex(IndexFile):
    """Entries of a relative offset (4 bytes) and a position (4 bytes)."""

    entry = Struct(">ii")

    def append(self, last_offset: int, position: int) -> None:
        self._append(last_offset - self.base_offset, position)

    def can_hold(self, offset: int) -> bool:
        return 0 <= offset - self.base_offset <= MAX_INT32

    def at_or_before(self, offset: int, *, cached_only: bool = False) -> Position:
        """Return the last entry whose offset is at most `offset`; the segment's start if there is none."""
        number = self._floor(offset - self.base_offset, 0, cached_only=cached_only)
        return self._position(number, cached_only=cached_only)

    def before_position(self, position: int, *, cached_only: bool = False) -> Position:
        """Return the last entry whose position is at most `position`, or else the segment's start."""
        return self._position(self._floor(position, 1, cached_only=cached_only), cached_only=cached_only)

    def last(self, *, cached_only: bool = False) -> Position | None:
        return self._position(len(self) - 1, cached_only=cached_only) if len(self) else None

    def truncate_to(self, offset: int) -> None:
        """Drop every entry for a batch that ends at or after `offset`."""
        self.truncate_entries(self._floor(offset - self.base_offset - 1, 0) + 1)

    def _position(self, number: int, *, cached_only: bool) -> Position:
        if number < 0:
            return Position(self.base_offset, 0)
        relative, position = self._at(number, cached_only=cached_only)
        return Position(self.base_offset + relative, position)


class TimeIndex(IndexFile):
    """Entries of a timestamp (8 bytes) and a relative offset (4 bytes), both ascending."""

    entry = Struct(">qi")

    @property
    def is_full(self) -> bool:
        return len(self) >= self.max_entries - 1  # one entry is reserved for the roll

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if `timestamp` is a new maximum."""
        last = self.last()
        if timestamp > (last.timestamp if last else -1):
            self._append(timestamp, offset - self.base_offset)

    def at_or_before(self, timestamp: int) -> MaxTimestamp | None:
        number = self._floor(timestamp, 0)
        return None if number < 0 else self._max_timestamp(number)

    def last(self) -> MaxTimestamp | None:
        return self._max_timestamp(len(self) - 1) if len(self) else None

    def truncate_to(self, offset: int) -> None:
        """Drop every entry for a record at or after `offset`."""
        self.truncate_entries(self._floor(offset - self.base_offset - 1, 1) + 1)

    def forget_from(self, offset: int) -> None:
        """Do the same in memory, see `forget_entries`."""
        self.forget_entries(self._floor(offset - self.base_offset - 1, 1) + 1)

    def _max_timestamp(self, number: int) -> MaxTimestamp:
        timestamp, relative = self._at(number)
        return MaxTimestamp(timestamp, self.base_offset + relative)
