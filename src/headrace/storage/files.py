"""Names of the files in a partition's directory, and the few ways files are written safely."""

import os
import re
from pathlib import Path

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TXN_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
CLEANED = ".cleaned"  # a compaction that did not finish: thrown away
SWAP = ".swap"  # a compaction that finished: put in place
TEMPORARY = ".tmp"  # a file that did not get its content: thrown away
DELETED = ".deleted"  # left by Kafka for a later removal: removed

_LOG_FILE = re.compile(r"(\d{20})\.log")
SEGMENT_SUFFIXES = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX, LOG)


def file_name(offset: int, suffix: str) -> str:
    """`00000000000000000042.log`: twenty digits, so that names sort as offsets do."""
    return f"{offset:020d}{suffix}"


def segment_base_offsets(directory: Path) -> list[int]:
    """The base offsets of the segments in `directory`, ascending: one for each `.log` file."""
    matches = (_LOG_FILE.fullmatch(path.name) for path in directory.iterdir())
    return sorted(int(match[1]) for match in matches if match)


def write_atomically(path: Path, content: bytes, *, sync: bool = True) -> None:
    """Replace `path` so that a crash leaves the old content or the new, never a mixture.

    Without `sync` that holds for a crash of the process, not of the machine.
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
    """All of `data` at `position`, in as many writes as the system needs."""
    written = os.pwrite(descriptor, data, position)
    while written < len(data):  # a disk about to be full takes a part; the next write says so
        written += os.pwrite(descriptor, memoryview(data)[written:], position + written)


def sync_file(path: Path) -> None:
    """Make the file durable, and its name."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable: a file's own fsync does not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
