"""Scanning a segment file batch by batch, in bounded memory even if the file is damaged.

An invalid size, magic or (where it is checked) checksum raises CorruptLog with the file and the position
of the batch, after all earlier batches have been yielded.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from headrace.protocol.batch import CRC_START, HEADER_SIZE, MAGIC, BatchHeader, read_header
from headrace.protocol.checksum import crc32c
from headrace.protocol.fields import Buffer
from headrace.storage import page_cache
from headrace.storage.errors import CorruptLog

CHUNK = 256 * 1024


class Scanned(Protocol):
    """A file that is read. Its descriptor is asked for before each read: it may be another one by then."""

    @property
    def path(self) -> Path: ...

    @property
    def descriptor(self) -> int: ...


class PrivateFile:
    """A file that nobody else uses, with its own descriptor, which is closed at the end of the block."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self._file = os.fdopen(descriptor, "rb", buffering=0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


class Scanner:
    """One pass over [start, end) of a file; a read of `chunk` bytes serves many small batches."""

    def __init__(self, file: Scanned, end: int, *, chunk: int = CHUNK, cached_only: bool = False) -> None:
        """With `cached_only`, NotCached is raised where a read would wait for the disk."""
        self._file = file
        self._end = end
        self._chunk = chunk
        self._cached_only = cached_only
        self._start = 0
        self._data: Buffer = b""

    def headers(self, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the position and header of every batch from `start` on."""
        position = start
        while position < self._end:
            header = self._header(position)
            yield position, header
            position += header.size

    def checked_headers(self, start: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Like `headers`, but check the checksum of every batch before it is yielded."""
        for position, header in self.headers(start):
            crc = self._crc(position + CRC_START, position + header.size)
            if crc != header.crc:
                why = f"batch checksum is {crc:#010x}, header says {header.crc:#010x}"
                raise CorruptLog(self._file.path, position, why)
            yield position, header

    def batch(self, position: int, header: BatchHeader) -> memoryview:
        """Return the bytes of the batch at `position`, whose header was yielded."""
        return self._read(position, header.size)

    def _header(self, position: int) -> BatchHeader:
        left = self._end - position
        if left < HEADER_SIZE:
            raise CorruptLog(self._file.path, position, f"{left} bytes are too few for a batch header")
        header = read_header(self._read(position, HEADER_SIZE))
        if header.magic != MAGIC:
            raise CorruptLog(self._file.path, position, f"batch magic is {header.magic}, expected {MAGIC}")
        if not HEADER_SIZE <= header.size <= left:
            raise CorruptLog(self._file.path, position, f"batch claims {header.size} bytes, {left} are left")
        return header

    def _crc(self, start: int, end: int) -> int:
        """Return the checksum of [start, end), a chunk at a time: a damaged length may be a gigabyte."""
        crc = 0
        for position in range(start, end, self._chunk):
            crc = crc32c(self._read(position, min(self._chunk, end - position)), crc)
        return crc

    def _read(self, position: int, size: int) -> memoryview:
        offset = position - self._start
        if not 0 <= offset <= len(self._data) - size:
            wanted = min(max(size, self._chunk), self._end - position)
            self._start = position
            self._data = page_cache.pread(
                self._file.path, self._file.descriptor, wanted, position, cached_only=self._cached_only
            )
            offset = 0
            if len(self._data) < size:
                raise CorruptLog(
                    self._file.path, position, f"the file ends {size - len(self._data)} bytes early"
                )
        return memoryview(self._data)[offset : offset + size]
