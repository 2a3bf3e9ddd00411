"""One file of the transaction log: a header, then batches, each written and synced as one.

A batch is the set of transactions that share one fsync: all of them were acknowledged, or none. The next one
is written only when this one is on disk. So an invalid batch without a valid one after it is an incomplete
write that was never acknowledged; an invalid batch followed by a valid one is damage, and the coordinator
does not start.
"""

import os
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.jute import Reader
from headrace.coordination.embedded.txns import Entry, decode_entry
from headrace.coordination.errors import CorruptJournal
from headrace.protocol.checksum import crc32c
from headrace.system.system_calls import sync_data

MAGIC: Final = b"HRTXNLOG"
VERSION: Final = 1
HEAD: Final = Struct(">8sII")  # magic, version, salt
BATCH_MAGIC: Final = b"\xf0HRB"
BATCH: Final = Struct(">4sIII")  # magic, checksum of all that follows it, length of the entries, their count
_CHECKED_FROM: Final = 8
TEMPORARY: Final = ".tmp"  # of an incomplete file


class LogFile:
    """Appends to one file. Not thread-safe."""

    def __init__(self, path: Path, descriptor: int, salt: int, size: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._salt = salt
        self.size = size

    @classmethod
    def create(cls, path: Path, *, sync: bool) -> "LogFile":
        """Create an empty file; it gets its name only when its header is complete."""
        temporary = path.with_name(path.name + TEMPORARY)
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)  # it holds passwords
        # A client can write data that looks like a batch. Without the salt its checksum does not match.
        salt = secrets.randbits(32)
        file = cls(path, descriptor, salt, 0)
        file._write(HEAD.pack(MAGIC, VERSION, salt))
        if sync:
            os.fsync(descriptor)
        temporary.replace(path)
        return file

    @classmethod
    def reopen(cls, scanned: "Scanned") -> "LogFile":
        """Open a scanned file for appends, and truncate an incomplete write at its end."""
        descriptor = os.open(scanned.path, os.O_RDWR)
        if os.fstat(descriptor).st_size != scanned.good_bytes:
            os.ftruncate(descriptor, scanned.good_bytes)
            os.fsync(descriptor)
        return cls(scanned.path, descriptor, scanned.salt, scanned.good_bytes)

    def append(self, entries: Sequence[bytes]) -> None:
        """Write a batch; durable after `sync`."""
        body = b"".join(entries)
        tail = BATCH.pack(BATCH_MAGIC, 0, len(body), len(entries))[_CHECKED_FROM:] + body
        self._write(BATCH_MAGIC + crc32c(tail, self._salt).to_bytes(4, "big") + tail)

    def sync(self) -> None:
        sync_data(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, data: bytes) -> None:
        written = 0
        while written < len(data):  # a nearly full disk takes a part; the next write raises the error
            written += os.pwrite(self._descriptor, data[written:], self.size + written)
        self.size += written


class Scanned(NamedTuple):
    """The valid and invalid parts of a file."""

    path: Path
    salt: int
    good_bytes: int
    bad_bytes: int


class Scan:
    """Reads a file once; `result` is complete when `entries` has ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._content = path.read_bytes()
        self._salt = 0
        self._good = 0

    @property
    def result(self) -> Scanned:
        return Scanned(self.path, self._salt, self._good, len(self._content) - self._good)

    def entries(self) -> Iterator[Entry]:
        """Yield every entry of every valid batch; raise CorruptJournal if an invalid one is not the last."""
        if len(self._content) < HEAD.size or not self._content.startswith(MAGIC):
            raise CorruptJournal(self.path, 0, "not a transaction log of a coordinator")
        _magic, version, self._salt = HEAD.unpack_from(self._content)
        if version != VERSION:
            raise CorruptJournal(
                self.path, len(MAGIC), f"version {version}; this program knows version {VERSION}"
            )
        self._good = HEAD.size
        while self._good < len(self._content):
            end = self._batch_end(self._good)
            if end is None:
                self._require_torn()
                return
            yield from self._decode(self._good, end)
            self._good = end

    def _batch_end(self, start: int) -> int | None:
        """Return the end of the batch at `start`, or None if it is invalid."""
        if start + BATCH.size > len(self._content):
            return None
        magic, checksum, length, _count = BATCH.unpack_from(self._content, start)
        end = start + BATCH.size + length
        if magic != BATCH_MAGIC or end > len(self._content):
            return None
        checked = memoryview(self._content)[start + _CHECKED_FROM : end]
        return end if crc32c(checked, self._salt) == checksum else None

    def _require_torn(self) -> None:
        later = self._content.find(BATCH_MAGIC, self._good + 1)
        while later >= 0:
            if self._batch_end(later) is not None:
                why = (
                    f"an invalid batch, but a valid one follows at byte {later}; restore the directory "
                    "from a backup"
                )
                raise CorruptJournal(self.path, self._good, why)
            later = self._content.find(BATCH_MAGIC, later + 1)

    def _decode(self, start: int, end: int) -> Iterator[Entry]:
        count = BATCH.unpack_from(self._content, start)[3]
        reader = Reader(self._content[start + BATCH.size : end])
        try:
            for _ in range(count):
                yield decode_entry(reader)
        except (MalformedRequest, KeyError) as error:
            raise CorruptJournal(self.path, start + BATCH.size + reader.position, error) from None
        if reader.left:
            raise CorruptJournal(self.path, end - reader.left, f"{reader.left} bytes after the last entry")
