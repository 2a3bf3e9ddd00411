"""File names in a partition's directory, and functions that write files safely."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
CLEANED = ".cleaned"  # an unfinished compaction: removed when the log is opened
REPAIRED = ".repaired"  # an unfinished copy of a damaged segment: removed when the log is opened
SWAP = ".swap"  # a finished compaction: replaces the segments that it covers
TEMPORARY = ".tmp"  # an incomplete file: removed when the log is opened
DELETED = ".deleted"  # a deleted file that is still to be unlinked

_LOG_FILE = re.compile(r"(\d{20})\.log")
SEGMENT_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX, LOG)


def file_name(offset: int, suffix: str) -> str:
    """Return a name such as `00000000000000000042.log`: with twenty digits, names sort like offsets."""
    return f"{offset:020d}{suffix}"


def base_offset_of(path: Path) -> int:
    """Return the base offset of the segment that a file belongs to."""
    return int(path.name[:20])


def names_in(directory: Path) -> list[str]:
    """Return the names of the files in a partition's directory."""
    return os.listdir(directory)  # noqa: PTH208  faster than a Path for each of them


def segment_base_offsets(names: Iterable[str]) -> list[int]:
    """Return the base offsets of the segments among these files, ascending: one for each `.log` file."""
    matches = map(_LOG_FILE.fullmatch, names)
    return sorted(int(match[1]) for match in matches if match)


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace `path` so that a crash leaves either the old or the new content.

    Without `sync` this holds for a crash of the process, not of the machine.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        write_all(descriptor, content, 0)
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    temporary.replace(path)
    if sync:
        sync_directory(path.parent)


def write_all(descriptor: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of `data` at `position`, with as many system calls as needed."""
    written = os.pwrite(descriptor, data, position)
    while written < len(data):  # a nearly full disk takes a part; the next write raises the error
        written += os.pwrite(descriptor, memoryview(data)[written:], position + written)


def sync_file(path: Path) -> None:
    """Make the file and its name durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable: the fsync of a file does not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_COPIED_AT_ONCE = 1024 * 1024


def make_private(path: Path, size: int) -> bool:
    """Replace a file with several hard links by a copy of its first `size` bytes; return whether it had any.

    The other names, in the log of another broker, keep the old file. A crash leaves the old or the new file.
    """
    if path.stat().st_nlink == 1:
        return False
    temporary = path.with_name(path.name + TEMPORARY)
    with path.open("rb", buffering=0) as source, temporary.open("wb", buffering=0) as copy:
        for start in range(0, size, _COPIED_AT_ONCE):
            write_all(copy.fileno(), source.read(min(_COPIED_AT_ONCE, size - start)), start)
        os.fsync(copy.fileno())
    temporary.replace(path)
    sync_directory(path.parent)
    return True
