"""The aborted transactions of a segment, for `read_committed` consumers.

Each entry has 34 bytes: version (2, always 0), producer id, first offset, last offset (the abort
marker's) and the last stable offset after the abort (8 bytes each). Most segments have no entry and
no file.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from headrace.storage.errors import CorruptIndex
from headrace.storage.files import sync_directory
from headrace.system.system_calls import sync_data

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0
_BLOCK = 64


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TxnIndex:
    """Entries in the order the transactions were aborted. Not thread-safe.

    So they are ordered by their last offset and by their last stable offset, but not by their first offset: a
    long transaction ends after short ones that began later. `_smallest` has the smallest first offset of
    every block of entries, so that a search skips the blocks that have nothing to offer.
    """

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        self._name = name
        self._entries: list[AbortedTxn] | None = None  # None until they are first needed
        self._smallest: list[int] = []

    @property
    def path(self) -> Path:
        return self._directory / self._name

    def __iter__(self) -> Iterator[AbortedTxn]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTxn], bool]:
        """Return the transactions with records in [start, end), and whether later segments may have more."""
        entries = self._load()
        low = bisect_left(entries, start, key=attrgetter("last_offset"))
        high = bisect_left(entries, end, key=attrgetter("last_stable_offset"))
        found = []
        position = low
        while position <= high and position < len(entries):
            block = position // _BLOCK
            following = (block + 1) * _BLOCK
            if self._smallest[block] < end:
                found += [
                    txn for txn in entries[position : min(following, high + 1)] if txn.first_offset < end
                ]
            position = following
        return found, high == len(entries)

    def append(self, aborted: AbortedTxn) -> None:
        """Add an entry and write it at once: unlike the other indexes, this one is small and rarely read."""
        entries = self._load()
        with self.path.open("ab") as file:
            file.write(_ENTRY.pack(_VERSION, *aborted))
        entries.append(aborted)
        self._note(aborted, len(entries) - 1)

    def sync(self) -> None:
        """Make the file and its name durable, if there is a file."""
        with suppress(FileNotFoundError), self.path.open("rb", buffering=0) as file:
            sync_data(file.fileno())
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
        self._use(entries)

    def _load(self) -> list[AbortedTxn]:
        if self._entries is None:
            try:
                self._use(_decode(self.path, self.path.read_bytes()))
            except FileNotFoundError:
                self._use([])
        assert self._entries is not None, "they were just loaded"
        return self._entries

    def _use(self, entries: list[AbortedTxn]) -> None:
        self._entries, self._smallest = entries, []
        for number, aborted in enumerate(entries):
            self._note(aborted, number)

    def _note(self, aborted: AbortedTxn, number: int) -> None:
        if number % _BLOCK == 0:
            self._smallest.append(aborted.first_offset)
        else:
            self._smallest[-1] = min(self._smallest[-1], aborted.first_offset)


def _decode(path: Path, data: bytes) -> list[AbortedTxn]:
    if len(data) % _ENTRY.size:
        raise CorruptIndex(f"{path} has {len(data)} bytes, not a multiple of {_ENTRY.size}")
    entries = []
    for version, *fields in _ENTRY.iter_unpack(data):
        if version != _VERSION:
            raise CorruptIndex(f"{path} has an entry of version {version}, expected {_VERSION}")
        entries.append(AbortedTxn(*fields))
    return entries
