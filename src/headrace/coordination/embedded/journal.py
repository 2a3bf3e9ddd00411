"""The coordinator's directory: snapshots and log files, from which the state is recovered at start.

    00000000000000000000.txnlog     batches from zxid 1 on
    00000000000000004711.snapshot   the state after zxid 4711
    00000000000000004711.txnlog     batches from zxid 4712 on

A snapshot and the log file that follows it have the same number. Older ones are kept for some time, in case
the newest snapshot is unreadable.
"""

import fcntl
import logging
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.coordination.embedded.snapshot import read_snapshot, write_snapshot
from headrace.coordination.embedded.state import CoordinatorState, Image
from headrace.coordination.embedded.txnlog import TEMPORARY, LogFile, Scan, Scanned
from headrace.coordination.errors import CorruptJournal, JournalInUse

LOG: Final = ".txnlog"
SNAPSHOT: Final = ".snapshot"
LOCK: Final = ".lock"
KEPT_SNAPSHOTS: Final = 3
SNAPSHOT_AFTER_ENTRIES: Final = 20_000  # replayed in well under a second
SNAPSHOT_AFTER_BYTES: Final = 64 << 20
_NAME: Final = re.compile(r"(\d{20})(\.txnlog|\.snapshot)")

logger = logging.getLogger(__name__)


class Journal:
    """Appended to by one thread at a time; `state` is the recovered state."""

    def __init__(self, directory: Path, *, tick_ms: int, sync: bool = True) -> None:
        self.directory = directory
        self.sync = sync
        directory.mkdir(0o700, parents=True, exist_ok=True)  # znodes have secrets, such as SCRAM credentials
        self._lock = _lock(directory)
        try:
            self.state, self._file, self._entries = self._recover(tick_ms)
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, entries: Sequence[bytes]) -> None:
        """Make a batch durable. Blocks for as long as the disk takes."""
        self._file.append(entries)
        if self.sync:
            self._file.sync()
        self._entries += len(entries)

    def wants_snapshot(self, node_count: int) -> bool:
        """Return whether the log is long, also relative to the size of a snapshot."""
        enough = max(SNAPSHOT_AFTER_ENTRIES, node_count // 2)
        return self._entries >= enough or self._file.size >= SNAPSHOT_AFTER_BYTES

    @property
    def entries_since_snapshot(self) -> int:
        return self._entries

    def roll(self, zxid: int) -> None:
        """Start a new file; everything up to `zxid` is durable in the old ones."""
        self._file.close()
        self._file = self._new_file(zxid)
        self._entries = 0

    def write_snapshot(self, image: Image) -> None:
        """Write a snapshot and remove old files; may run in another thread than `append`."""
        write_snapshot(self.directory / _name(image.zxid, SNAPSHOT), image, sync=self.sync)
        self._sync_directory()
        snapshots = self._numbers(SNAPSHOT)[-KEPT_SNAPSHOTS:]
        oldest = snapshots[0] if len(snapshots) == KEPT_SNAPSHOTS else 0
        for suffix in (SNAPSHOT, LOG):
            for number in self._numbers(suffix):
                if number < oldest:
                    (self.directory / _name(number, suffix)).unlink(missing_ok=True)

    def close(self) -> None:
        self._file.close()
        os.close(self._lock)

    def _recover(self, tick_ms: int) -> tuple[CoordinatorState, LogFile, int]:
        for leftover in self.directory.glob(f"*{TEMPORARY}"):
            leftover.unlink()
        state = CoordinatorState(tick_ms, self._newest_image())
        snapshot_zxid = state.zxid
        logs = self._numbers(LOG)
        # The last file that starts at or before the snapshot, and all after it.
        first = max((number for number in logs if number <= snapshot_zxid), default=0)
        if logs and first not in logs:
            raise CorruptJournal(
                self.directory, 0, f"the transactions after zxid {snapshot_zxid} start at {logs[0] + 1}"
            )
        scanned = None
        for number in (number for number in logs if number >= first):
            if scanned is not None and (scanned.bad_bytes or number != state.zxid):
                raise CorruptJournal(
                    scanned.path, scanned.good_bytes, f"it ends after zxid {state.zxid}, not {number}"
                )
            scanned = self._replay(self.directory / _name(number, LOG), state)
        file = LogFile.reopen(scanned) if scanned else self._new_file(state.zxid)
        return state, file, state.zxid - snapshot_zxid

    def _newest_image(self) -> Image | None:
        numbers = self._numbers(SNAPSHOT)
        for number in reversed(numbers):
            try:
                return read_snapshot(self.directory / _name(number, SNAPSHOT))
            except CorruptJournal as error:
                if number == numbers[0] and 0 not in self._numbers(LOG):
                    raise  # there is nothing older to recover from
                logger.warning("%s; recovering from an older snapshot", error)
        return None

    def _replay(self, path: Path, state: CoordinatorState) -> Scanned:
        scan = Scan(path)
        for entry in scan.entries():
            if entry.zxid <= state.zxid:
                continue  # already in the snapshot
            if entry.zxid != state.zxid + 1:
                raise CorruptJournal(path, scan.result.good_bytes, f"zxid {entry.zxid} after {state.zxid}")
            state.apply(entry)
        if scan.result.bad_bytes:
            logger.warning(
                "%s: dropped %d bytes from byte %d on, a write that was never acknowledged",
                path,
                scan.result.bad_bytes,
                scan.result.good_bytes,
            )
        return scan.result

    def _new_file(self, zxid: int) -> LogFile:
        file = LogFile.create(self.directory / _name(zxid, LOG), sync=self.sync)
        self._sync_directory()
        return file

    def _numbers(self, suffix: str) -> list[int]:
        found = (_NAME.fullmatch(path.name) for path in self.directory.iterdir())
        return sorted(int(match[1]) for match in found if match and match[2] == suffix)

    def _sync_directory(self) -> None:
        """Make names durable: the fsync of a file does not."""
        if self.sync:
            descriptor = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _name(zxid: int, suffix: str) -> str:
    """Return a file name; with twenty digits, names sort like numbers."""
    return f"{zxid:020d}{suffix}"


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise JournalInUse(
            f"{directory} is in use by another coordinator: stop it first, or choose another directory"
        ) from None
    return descriptor
