"""Read the facts about a directory with brokers' logs for the doctor, without changing anything."""

import fcntl
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from headrace.client.doctor.data import BrokerDirectory, Damage
from headrace.storage.checks.verify import verify
from headrace.storage.directory import BROKERS, CLEAN_SHUTDOWN
from headrace.storage.errors import StorageError
from headrace.storage.files import CLEANED, DELETED, REPAIRED, SWAP, TEMPORARY
from headrace.storage.identity import LOCK_FILE, META_PROPERTIES, read_identity
from headrace.storage.topics import parse_directory

MOST_BYTES: Final = 1024**3  # to read; the smallest partitions come first
_BROKER: Final = re.compile(r"broker-\d+")
_DOOMED: Final = re.compile(r".+-\d+\.[0-9a-f]{32}-(delete|future|stray)")
_IS_LINUX: Final = sys.platform == "linux"
# struct flock, 64 bits: type, whence, start, length, process; on macOS start, length, process, type, whence
_FLOCK: Final = "hhqqi4x" if _IS_LINUX else "qqihh"


def broker_directories(path: Path) -> list[Path]:
    """Return the log directories in a directory of `headrace up`.

    If `path` is a log directory itself, return it and those of other brokers that share the disk.
    """
    if not path.is_dir():
        return []
    if (path / META_PROPERTIES).exists() or (path / LOCK_FILE).exists():
        return [path, *_directories(path / BROKERS)]
    return sorted(each for each in path.iterdir() if each.is_dir() and _BROKER.fullmatch(each.name))


def bytes_to_read(path: Path) -> int:
    """Return how many bytes `read_directory` will read."""
    if lock_holder(path) is not None:
        return 0
    return sum(size for _, size in _chosen(path))


def read_directory(path: Path, advance: Callable[[float], None] = lambda _: None) -> BrokerDirectory:
    """Return the facts about a log directory; its files are verified only if no broker has it open.

    `advance` is called with the number of bytes that were read.
    """
    held_by = lock_holder(path)
    partitions = [each for each in _directories(path) if parse_directory(each.name) is not None]
    try:
        identity, unreadable = read_identity(path), ""
    except StorageError as error:
        identity, unreadable = None, str(error)
    chosen = [] if held_by is not None else list(_chosen(path))
    damages = [damage for each, _ in chosen for damage in _verify(each, advance)]
    return BrokerDirectory(
        path=str(path),
        broker_id=None if identity is None else identity.broker_id,
        cluster_id=None if identity is None else identity.cluster_id,
        held_by=held_by,
        clean=(path / CLEAN_SHUTDOWN).exists(),
        partitions=len(partitions),
        verified=len(chosen),
        damages=tuple(damages),
        leftovers=tuple(_leftovers(path)) if held_by is None else (),
        strangers=tuple(_strangers(path)),
        unreadable=unreadable,
    )


def lock_holder(path: Path) -> int | None:
    """Return the process that runs a broker in the directory."""
    try:
        descriptor = os.open(path / LOCK_FILE, os.O_RDWR)
    except OSError:
        return None
    try:
        kind = (fcntl.F_WRLCK, os.SEEK_SET)
        query = struct.pack(_FLOCK, *kind, 0, 0, 0) if _IS_LINUX else struct.pack(_FLOCK, 0, 0, 0, *kind)
        found = struct.unpack(_FLOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, query))
    finally:
        os.close(descriptor)
    found_kind, pid = (found[0], found[4]) if _IS_LINUX else (found[3], found[2])
    return None if found_kind == fcntl.F_UNLCK else int(pid)


def _chosen(path: Path) -> Iterator[tuple[Path, int]]:
    """Yield the partitions to verify, with their sizes: as many as MOST_BYTES allows."""
    sizes = []
    for each in _directories(path):
        logs = list(each.glob("*.log"))
        if parse_directory(each.name) is not None and logs:
            sizes.append((sum(log.stat().st_size for log in logs), each))
    total = 0
    for size, each in sorted(sizes):
        total += size
        if total > MOST_BYTES:
            return
        yield each, size


def _verify(partition: Path, advance: Callable[[float], None]) -> Iterator[Damage]:
    try:
        reports = []
        for report in verify(partition):
            reports.append(report)
            advance(report.size)
    except (StorageError, OSError) as error:
        yield Damage(path=str(partition), says=str(error), last=False)
        return
    for report in reports:
        if report.problems:
            problem = report.problems[0].partition(": ")[2] or report.problems[0]
            last = report is reports[-1]
            yield Damage(path=f"{partition.name}/{report.path.name}", says=problem, last=last)


def _directories(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir()) if path.is_dir() else []


def _leftovers(path: Path) -> Iterator[str]:
    yield from (each.name for each in _directories(path) if _DOOMED.fullmatch(each.name))
    for suffix in (CLEANED, REPAIRED, SWAP, TEMPORARY, DELETED):
        yield from (str(each.relative_to(path)) for each in sorted(path.glob(f"*/*{suffix}")))


def _strangers(path: Path) -> Iterator[str]:
    for each in _directories(path):
        known = parse_directory(each.name) is not None or _DOOMED.fullmatch(each.name)
        if not known and each.name not in {"__cluster_metadata-0", BROKERS}:
            yield each.name
