"""The list of a log's closed segments, in the file `headrace.segments` of the partition's directory.

A closed segment is listed, with the size and the modification time of its file, once it is durable, and taken
off the list before its file is deleted, replaced or truncated. So every listed segment has to be there when
the log is opened. A segment that is not listed is not checked: a log of an older version has no list, and
Apache Kafka ignores the file.
"""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from headrace.protocol.checksum import crc32c
from headrace.storage.checkpoints import CorruptCheckpoint, read_lines, write_lines
from headrace.storage.files import LOG, TEMPORARY, file_name, sync_file

FILE_NAME = "headrace.segments"

logger = logging.getLogger(__name__)


class ListedSegment(NamedTuple):
    """The file of a closed segment, as it was when it was listed."""

    size: int
    modified_ns: int


class SegmentList:
    """The listed segments of one log, by base offset. `add` may run in several threads beside the rest."""

    def __init__(self, directory: Path, *, has_file: bool) -> None:
        """Read the list; an unreadable one is empty, and so are the checks of this start."""
        self._directory = directory
        self._path = directory / FILE_NAME
        self._adding = threading.Lock()  # a flush and a compaction may list segments at the same time
        self._writing = threading.Lock()
        self.entries = _read(self._path) if has_file else {}

    def add(self, base_offsets: Iterable[int], *, is_stale: Callable[[], bool]) -> None:
        """List closed segments that are durable; `is_stale` tells whether any log bytes were removed since.

        The list is written and synced before `_writing` is taken: `remove` never waits for the disk.
        """
        with self._adding:
            listed = dict(self.entries)
            for base_offset in base_offsets:
                if base_offset not in listed:
                    try:
                        status = (self._directory / file_name(base_offset, LOG)).stat()
                    except FileNotFoundError:
                        return  # the log was deleted in the meantime
                    listed[base_offset] = ListedSegment(status.st_size, status.st_mtime_ns)
            if len(listed) == len(self.entries):
                return
            prepared = self._path.with_name(f"{FILE_NAME}.new{TEMPORARY}")
            _write(prepared, listed)
            sync_file(prepared)
            with self._writing:
                if is_stale():
                    prepared.unlink(missing_ok=True)  # the next flush lists them
                else:
                    prepared.replace(self._path)
                    self.entries = listed

    def remove(self, base_offsets: Collection[int]) -> None:
        """Take segments off the list, before their files are deleted, replaced or truncated."""
        with self._writing:
            left = {base: each for base, each in self.entries.items() if base not in base_offsets}
            if len(left) < len(self.entries):
                # Not synced: the file systems that matter keep this rename before the later ones.
                _write(self._path, left)
                self.entries = left


def _read(path: Path) -> dict[int, ListedSegment]:
    try:
        *lines, last = read_lines(path)
        numbers = [[int(word) for word in line.split(" ")] for line in lines]
        entries = {base: ListedSegment(size, modified_ns) for base, size, modified_ns in numbers}
        problem: object = "" if last == _checksum(lines) else f"{last!r} is not its checksum"
    except (CorruptCheckpoint, ValueError, OSError) as error:
        problem = error
    if problem:
        logger.warning("the segments of %s are opened without their list: %s", path.parent, problem)
        return {}
    return entries


def _write(path: Path, entries: dict[int, ListedSegment]) -> None:
    lines = [f"{base} {size} {modified_ns}" for base, (size, modified_ns) in sorted(entries.items())]
    write_lines(path, [*lines, _checksum(lines)], sync=False)


def _checksum(lines: list[str]) -> str:
    return f"crc32c {crc32c(chr(10).join(lines).encode()):08x}"
