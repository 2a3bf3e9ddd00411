"""The aborted transactions of a segment, for `read_committed` consumers.

Each entry has 34 bytes: version (2, always 0), producer id, first offset, last offset (the abort
marker's) and the last stable offset after the abort (8 bytes each). Most segments have no entry and
no file.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.storage.errors import CorruptIndex
from headrace.storage.files import sync_directory

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """Entries in the order the transactions were aborted. Not thread-safe."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._entries: list[AbortedTxn] | None = None  # None until they are first needed

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._load())

    def append(self, aborted: AbortedTxn) -> None:
        """Add an entry and write it at once: unlike the other indexes, this one is small and rarely read."""
        entries = self._load()
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
        entries.append(aborted)

    def sync(self) -> None:
        """Make the file and its name durable, if there is a file."""
        with suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            os.fdatasync(file.fileno())
            sync_directory(self.path.parent)

    def truncate_to(self, offset: int) -> None:
        """Drop every transaction whose abort marker is at or after `offset`."""
        self.replace([entry for entry in self._load() if entry.last_offset < offset])

    def replace(self, entries: list[AbortedTxn]) -> None:
        """Replace all entries; without entries the file is removed."""
        if entries:
            self.path.write_bytes(b"".join(_ENTRY.pack(_VERSION, *entry) for entry in entries))
        else:
            self.path.unlink(missing_ok=True)
        self._entries = entries

    def _load(self) -> list[AbortedTxn]:
        if self._entries is None:
            try:
                self._entries = _decode(self.path, self.path.read_bytes())
            except FileNotFoundError:
                self._entries = []
        return self._entries


def _decode(path: Path, data: bytes) -> list[AbortedTxn]:
    if len(data) % _ENTRY.size:
        raise CorruptIndex(f"{path} has {len(data)} bytes, not a multiple of {_ENTRY.size}")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptIndex(f"{path} has an entry of version {version}, expected {_VERSION}")
        entries.append(AbortedTxn(*fields))
    return entries
