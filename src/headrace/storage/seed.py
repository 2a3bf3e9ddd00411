"""Seeding: a new replica begins with the files of a replica of another broker on the same machine.

The other broker links its closed segments into a staging directory of the new replica's broker (`os.link`, no
bytes are copied) and copies the small files beside them. The new replica's broker renames the directory,
opens it like a log that was closed, and fetches the rest from the leader. Linked segments are never changed:
whoever truncates one or appends to it copies it first (`Segment`).
"""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from headrace.storage import files
from headrace.storage.config import LogConfig
from headrace.storage.epochs import FILE_NAME as EPOCHS_FILE
from headrace.storage.errors import ForeignDirectory
from headrace.storage.identity import Identity, read_identity, write_topic_id
from headrace.storage.log import Log
from headrace.storage.producers.producers import snapshots_in
from headrace.storage.recovery import open_log
from headrace.storage.segment import Segment

# The name of a deleted log: whoever opens the log directory next removes what an interrupted seeding has
# left, and so do older versions of Headrace, and Kafka.
STAGING_NAME = re.compile(r".+-\d+\.[0-9a-f]{32}-delete")
_INDEXES = (files.OFFSET_INDEX, files.TIME_INDEX, files.TXN_INDEX)


class Seed(NamedTuple):
    """The offsets of the records in a staging directory: from `log_start_offset` up to `end_offset`."""

    log_start_offset: int
    end_offset: int

    @property
    def is_empty(self) -> bool:
        return self.end_offset <= self.log_start_offset


class SeedPlan(NamedTuple):
    """The files of a log that a seed consists of; `link_into` may run in another thread than the log."""

    log: Log
    cuts: int  # `log.cuts` when the plan was made
    seed: Seed
    base_offsets: tuple[int, ...]  # of the segments

    @property
    def is_stale(self) -> bool:
        """Whether bytes were removed from the log, or segments replaced, since the plan was made."""
        return self.log.cuts != self.cuts or self.log.offline is not None

    def link_into(self, staging: Path, owner: Identity) -> None:
        """Link the segments and copy the other files; raise OSError, or ForeignDirectory if it is refused."""
        self.log.flush_closed()  # the new replica's recovery point is the end of the seed
        descriptor = open_staging(staging, owner)
        try:
            for base_offset in self.base_offsets:
                self._link(base_offset, descriptor)
            for name in self._other_files():
                _copy(self.log.directory / name, name, descriptor)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _link(self, base_offset: int, descriptor: int) -> None:
        name = files.file_name(base_offset, files.LOG)
        os.link(self.log.directory / name, name, dst_dir_fd=descriptor, follow_symlinks=False)
        for suffix in _INDEXES:
            name = files.file_name(base_offset, suffix)
            _copy(self.log.directory / name, name, descriptor)

    def _other_files(self) -> Iterable[str]:
        yield EPOCHS_FILE
        for offset in snapshots_in(files.names_in(self.log.directory)):
            if self.seed.log_start_offset < offset <= self.seed.end_offset:
                yield files.file_name(offset, files.SNAPSHOT)


def plan_seed(log: Log, high_watermark: int) -> SeedPlan:
    """Return the closed segments with records that are not deleted and all lie below `high_watermark`."""
    start, sound_to = log.log_start_offset, min(log.damaged, default=log.log_end_offset)
    chosen = [
        (segment.base_offset, end)
        for segment, end in log.segments.closed()
        if start < end <= min(high_watermark, sound_to)
    ]
    end_offset = chosen[-1][1] if chosen else start
    return SeedPlan(log, log.cuts, Seed(start, end_offset), tuple(base for base, _ in chosen))


def open_staging(path: Path, owner: Identity) -> int:
    """Return a descriptor of a staging directory in the log directory of `owner`.

    The path comes from another broker. ForeignDirectory is raised unless it is the path of a staging
    directory, without symbolic links, in a log directory of that broker, both of this process's user.
    """
    if not _is_staging_path(path):
        raise ForeignDirectory(f"{path} is not the path of a staging directory")
    found = read_identity(path.parent)
    if found != owner:
        raise ForeignDirectory(f"{path.parent} belongs to {found}, expected {owner}")
    parent = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        descriptor = os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        try:
            _check_user(path, os.fstat(parent).st_uid, os.fstat(descriptor).st_uid)
        except ForeignDirectory:
            os.close(descriptor)
            raise
    finally:
        os.close(parent)
    return descriptor


def _is_staging_path(path: Path) -> bool:
    try:
        is_real = path.is_absolute() and path.parent.resolve() == path.parent
    except (ValueError, RuntimeError):  # a NUL in it, or a loop of symbolic links
        return False
    return is_real and "\0" not in path.name and STAGING_NAME.fullmatch(path.name) is not None


def _check_user(path: Path, *found: int) -> None:
    if any(each != os.geteuid() for each in found):
        raise ForeignDirectory(f"{path} belongs to user {found}, this process runs as {os.geteuid()}")


def _copy(source: Path, name: str, directory: int) -> None:
    """Copy a small file, durably; a file that does not exist is not needed."""
    try:
        content = source.read_bytes()
    except FileNotFoundError:
        return
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644, dir_fd=directory)
    try:
        files.write_all(descriptor, content, 0)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_seeded(
    staging: Path,
    directory: Path,
    seed: Seed,
    *,
    topic_id: bytes,
    config: LogConfig,
    now_ms: Callable[[], int],
) -> Log:
    """Rename a complete staging directory to `directory`, and open the log in it.

    A new active segment is created first: nothing is ever appended to a linked one.
    """
    write_topic_id(staging, topic_id)
    Segment.create(staging, seed.end_offset, config, now_ms=now_ms()).release()
    files.sync_directory(staging)
    staging.rename(directory)
    files.sync_directory(directory.parent)
    return open_log(directory, config, now_ms=now_ms, log_start_offset=seed.log_start_offset, clean=True)
