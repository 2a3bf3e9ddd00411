"""The files of a partition's log: its segments, what of them is durable, and whether the log is online.

`flush` and `unlink_deleted` may run in another thread than the rest.
"""

import errno
import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from headrace.storage.checks.damage import Damage
from headrace.storage.config import NEVER, LogConfig
from headrace.storage.errors import LogOffline
from headrace.storage.files import DELETED, sync_directory
from headrace.storage.open_files import OpenFiles
from headrace.storage.replay import Derived
from headrace.storage.segment import Segment
from headrace.storage.segment_list import SegmentList
from headrace.storage.segments import Segments

_NO_DESCRIPTOR = {errno.EMFILE, errno.ENFILE}  # the process, or the machine, has too many open files

logger = logging.getLogger(__name__)


def is_harmless(error: OSError) -> bool:
    """Return whether only a file descriptor was missing."""
    return error.errno in _NO_DESCRIPTOR


class LogFiles:
    """What a log consists of. Most errors of the operating system take it offline: see `Log`."""

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        *,
        now_ms: Callable[[], int],
        segments: Segments,
        derived: Derived,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        listed: SegmentList,
        damaged: Iterable[Damage] = (),
        create_files: Callable[[], None] | None = None,
        files: OpenFiles | None = None,
    ) -> None:
        """`create_files` creates the directory and the files of a new log before its first append."""
        self.listed = listed
        self.damaged = {each.base_offset: each for each in damaged}  # closed segments, by base offset
        self.suspects = set(self.damaged)  # base offsets of segments that are to be checked, in a thread
        self.suspected: set[Any] | None = None  # logs: this one adds itself with its first suspect segment
        self.files = files
        self.directory = directory
        self.config = config
        self.now_ms = now_ms
        self.segments = segments
        self.epochs, self.producers = self._derived = derived
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point  # everything before it has been flushed
        self.flushed_ms = now_ms()
        self.offline: str | None = None
        self._positions: dict[int, tuple[Segment, int]] = {}  # where recent readers continue
        self.last_unreadable_offset = -1  # the last one that compaction has logged
        self.cuts = 0  # how often bytes were removed from the log, for work in other threads
        self._deleted: list[Path] = []  # files that are still to be unlinked
        self.changed: set[Any] | None = None  # logs: this one adds itself after a change
        self._create_files = create_files
        self._has_durable_name = create_files is None

    @property
    def has_files(self) -> bool:
        """Whether the log's directory exists: a log to which nothing was ever appended has none."""
        return self._create_files is None

    def _ensure_files(self) -> None:
        if self._create_files is not None:
            self._create_files()
            self._create_files = None

    def use_config(self, config: LogConfig) -> None:
        """Apply changed settings, from the next append, flush or retention on."""
        has_other_flush_ms = config.flush_ms != self.config.flush_ms
        self.config = config
        if has_other_flush_ms:
            self._note_change()

    def _note_change(self) -> None:
        """Report that the log has something to flush, or offsets that a checkpoint has to store.

        Called after the change, in any thread: whoever takes the log out of the set must see the change.
        """
        if self.changed is not None:
            self.changed.add(self)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def size(self) -> int:
        return self.segments.size

    def discard(self, path: Path) -> None:
        """Rename a file of a deleted segment, which takes no time; `unlink_deleted` frees its space."""
        deleted = path.with_name(path.name + DELETED)
        with suppress(FileNotFoundError):
            path.replace(deleted)
            self._deleted.append(deleted)

    @property
    def has_deleted_files(self) -> bool:
        return bool(self._deleted)

    def unlink_deleted(self) -> None:
        """Unlink the files of deleted segments, which may block for long. May run in another thread."""
        try:
            while True:
                self._deleted.pop(0).unlink(missing_ok=True)  # the whole log may be deleted by now
        except IndexError:
            return  # none is left: another thread may have taken the last one
        except OSError as error:
            raise self._fail("unlink deleted segments of", error) from error

    def flush(self) -> None:
        """Make everything appended so far durable. May run in another thread than the appends."""
        self._flush(self.log_end_offset)
        self.flushed_ms = self.now_ms()

    def _flush(self, end: int) -> None:
        """Make the segments that start before `end` durable, and move the recovery point there."""
        self._ensure_online()
        cuts = self.cuts
        segments = [segment for segment in self.segments if segment.base_offset < end]
        # A segment that ends at the recovery point may have been closed after its last flush: its
        # records are on disk, its indexes perhaps not.
        first = bisect_left(segments, self.recovery_point, key=lambda segment: segment.base_offset) - 1
        for segment in segments[max(0, first) :]:
            try:
                segment.flush()
            except OSError as error:
                self._ensure_online()  # otherwise the log was deleted, or has failed, in the meantime
                # A second fsync does not bring back what a failed one has dropped; but segments that have
                # left the log in the meantime need not be durable.
                if segment in self.segments:
                    raise self._fail("flush", error, harmless=True) from error
        try:
            self.epochs.sync()
            self._sync_name()
        except OSError as error:
            raise self._fail("flush the epochs of", error, harmless=True) from error
        if cuts == self.cuts:
            self.recovery_point = max(self.recovery_point, end)
            self._note_change()
        self.list_segments()

    def list_segments(self) -> None:
        """List the closed segments that are durable, for the next start. May run in another thread."""
        cuts, closed = self.cuts, Segments(self.segments).closed()
        durable = [segment.base_offset for segment, end_offset in closed if end_offset <= self.recovery_point]
        try:
            self.listed.add(durable, is_stale=lambda: self.cuts != cuts)
        except OSError as error:
            raise self._fail("list the segments of", error, harmless=True) from error

    def _sync_name(self) -> None:
        """Make the name of the log's directory durable, once."""
        if self.has_files and not self._has_durable_name:
            sync_directory(self.directory.parent)
            self._has_durable_name = True

    def flush_closed(self) -> None:
        """Make the closed segments durable, so that recovery has to check only the newest one.

        May run in another thread than the appends.
        """
        self._flush(self.active.base_offset)

    @property
    def has_unflushed_segments(self) -> bool:
        return self.recovery_point < self.active.base_offset

    @property
    def flush_is_due(self) -> bool:
        """Return whether `flush.ms` has passed since the last flush and there is something to flush."""
        waited = self.now_ms() - self.flushed_ms
        return waited >= self.config.flush_ms and self.recovery_point < self.log_end_offset

    @property
    def flush_due_ms(self) -> int | None:
        """Return when the log is to be flushed: at once (0) if it has closed segments to flush.

        None if everything is flushed, if only the system decides when to write it to disk, or if the log is
        offline.
        """
        if self.recovery_point >= self.log_end_offset or self.offline is not None:
            return None
        if self.has_unflushed_segments:
            return 0
        return None if self.config.flush_ms == NEVER else self.flushed_ms + self.config.flush_ms

    def close(self) -> None:
        """Close cleanly: everything is flushed, and opening the log again needs no scan."""
        if self.offline is None:
            try:
                self.active.finish()
                if self.recovery_point < self.log_end_offset:
                    self.flush()
                self.producers.take_snapshot()
                self.list_segments()
                self.unlink_deleted()
            except OSError as error:
                raise self._fail("close", error) from error
        self.release()

    def release(self) -> None:
        """Close the files and write nothing, as a crash would."""
        for segment in self.segments:
            segment.release()

    def retire(self) -> None:
        """Close the files for good: they are about to be deleted, and perhaps created again.

        A compaction in another thread finds its plan stale, and installs nothing.
        """
        self.offline = f"{self.directory} has been deleted"
        self._positions.clear()
        self.cuts += 1
        self.release()

    def _ensure_online(self) -> None:
        if self.offline is not None:
            raise LogOffline(self.offline)

    def _fail(self, doing: str, error: OSError, *, harmless: bool = False) -> LogOffline:
        """Take the log offline, unless the call was `harmless` and only lacked a file descriptor."""
        if harmless and is_harmless(error):
            logger.warning("could not %s %s: %s", doing, self.directory, error)
            return LogOffline(f"could not {doing} {self.directory} now: {error}")
        self.offline = f"{self.directory} is offline: could not {doing} it: {error}"
        logger.error(self.offline)
        return LogOffline(self.offline)

    def suspect_segment(self, base_offset: int) -> None:
        """Have a segment checked: somebody could not use its records."""
        self.suspects.add(base_offset)
        if self.suspected is not None:
            self.suspected.add(self)

    def _forget(self, segments: Iterable[Segment]) -> None:
        """Take segments off the list that are about to be deleted, replaced or truncated."""
        self._positions.clear()
        self.cuts += 1  # before the list: a flush in another thread must not list them again
        base_offsets = {segment.base_offset for segment in segments}
        self.listed.remove(base_offsets)
        for base_offset in base_offsets:
            self.damaged.pop(base_offset, None)
            self.suspects.discard(base_offset)
