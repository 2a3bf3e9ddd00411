"""The start offset of every leader epoch in a log, stored in `leader-epoch-checkpoint`.

A follower asks its leader for the end offset of the follower's last epoch, and truncates its log to it: this
removes records that diverge from the leader's log.
"""

import logging
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.protocol.ids import LeaderEpoch, Offset
from headrace.storage.checkpoints import CorruptCheckpoint, read_lines, write_lines
from headrace.storage.files import sync_file

FILE_NAME = "leader-epoch-checkpoint"
UNKNOWN_EPOCH = LeaderEpoch(-1)
UNKNOWN_OFFSET = Offset(-1)

logger = logging.getLogger(__name__)


class EpochStart(NamedTuple):
    epoch: LeaderEpoch
    start_offset: Offset


def epoch_at(entries: Sequence[EpochStart], offset: int) -> LeaderEpoch:
    """Return the epoch that wrote `offset`, or -1."""
    after = bisect_right(entries, offset, key=lambda entry: entry.start_offset)
    return entries[after - 1].epoch if after else UNKNOWN_EPOCH


class LeaderEpochs:
    """Leader epochs and their start offsets, both strictly ascending.

    An epoch without batches is in memory only: it means nothing after a restart, and a broker that becomes
    leader of a thousand partitions does not write a thousand files. The file with a new epoch is durable
    after `sync`, which precedes every move of the log's recovery point: until then, the batches after the
    recovery point contain the same information. Every other change is durable on return.
    """

    def __init__(self, directory: Path, *, has_file: bool = True) -> None:
        """Read the file in `directory`, unless the caller knows that there is none."""
        self._directory = directory
        entries = _read(self._path) if has_file else None
        self.lost = entries is None  # the file was missing or unreadable
        self._entries = entries or []
        self.is_unwritten = False  # the next batch has to write the file
        self._unsynced = False
        self._dropped = UNKNOWN_EPOCH  # the latest epoch that may be in the file although it is dropped

    @property
    def _path(self) -> Path:
        return self._directory / FILE_NAME

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> LeaderEpoch:
        return self._entries[-1].epoch if self._entries else UNKNOWN_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` wrote the record at `start_offset`, and drop epochs that start there or later.

        Example: epoch 4 starts at 0, and epoch 5 at 10, but its leader wrote nothing. If epoch 4 then writes
        offset 10, replicated from another leader, epoch 5 cannot have started there.
        """
        if self._assign(epoch, start_offset):
            self.write()

    def begin(self, epoch: int, start_offset: int) -> None:
        """Do the same as `assign` in memory; `write` is to be called with the first batch of the epoch."""
        if self._assign(epoch, start_offset):
            self.is_unwritten = True

    def _assign(self, epoch: int, start_offset: int) -> bool:
        if epoch == self.latest:
            return False
        kept = len(self._entries)
        while kept and self._entries[kept - 1].start_offset >= start_offset:
            kept -= 1
        known = kept and self._entries[kept - 1].epoch >= epoch
        dropped = self._entries[kept:]
        if known and not dropped:
            return False
        if dropped:
            self._dropped = max(self._dropped, dropped[-1].epoch)
            del self._entries[kept:]
        if not known:
            self._entries.append(EpochStart(LeaderEpoch(epoch), Offset(start_offset)))
        return True

    def write(self) -> None:
        """Write the file; durably if a power failure could otherwise bring back an epoch that was dropped.

        An earlier epoch than the latest one cannot come back: the batches of the latest one, which are read
        again after a power failure, replace it.
        """
        self._write(sync=self._dropped >= self.latest)

    def sync(self) -> None:
        """Make the file durable if it is not. May run in another thread than the changes."""
        if self._unsynced:
            self._unsynced = False  # first: a change from now on needs another sync
            with suppress(FileNotFoundError):  # the log was deleted in the meantime
                sync_file(self._path)
                self._dropped = UNKNOWN_EPOCH

    def end_of(self, epoch: int, log_end_offset: int) -> EpochStart:
        """Return the largest known epoch up to `epoch`, with its end offset (exclusive).

        With epochs 1 from 5, 3 from 10 and a log end offset of 15: end_of(1) and end_of(2) are (1, 10),
        end_of(3) is (3, 15), and end_of(4) is (-1, -1): the epoch is unknown. Epoch 0 is older than the
        whole log; end_of(0) is (0, 5), so that its follower continues from the start.
        """
        if epoch == UNKNOWN_EPOCH or epoch > self.latest:
            return EpochStart(UNKNOWN_EPOCH, UNKNOWN_OFFSET)
        after = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        end = self._entries[after].start_offset if after < len(self._entries) else Offset(log_end_offset)
        return EpochStart(self._entries[after - 1].epoch if after else LeaderEpoch(epoch), end)

    def at(self, offset: int) -> LeaderEpoch:
        """Return the epoch that wrote `offset`, or -1."""
        return epoch_at(self._entries, offset)

    def keep_within(self, start: int, end: int) -> None:
        """Drop the epochs outside the offsets of a log that is opened, without a change of the file.

        A restarted leader begins a new epoch each time, and often nobody writes in it. The file may keep such
        epochs until the first batch is appended, which may be of an earlier epoch.
        """
        self._dropped = max(
            (entry.epoch for entry in self._entries if entry.start_offset >= end), default=UNKNOWN_EPOCH
        )
        self.is_unwritten = self._dropped != UNKNOWN_EPOCH
        self._entries = [entry for entry in self._entries if entry.start_offset < end]
        self._entries = self._from(min(start, end))

    def truncate_from_end(self, offset: int) -> None:
        """Drop the epochs that start at or after `offset`."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        self._replace(kept)

    def truncate_from_start(self, offset: int) -> None:
        """Drop the epochs that end before `offset`; the epoch that contains `offset` now starts there.

        It does not wait for the disk: if a power failure brings back an older file, `keep_within` drops the
        same epochs when the log is opened.
        """
        entries = self._from(offset)
        if entries != self._entries:
            self._entries = entries
            self.write()

    def _from(self, offset: int) -> list[EpochStart]:
        kept = [entry for entry in self._entries if entry.start_offset > offset]
        spanning = self.at(offset)
        if spanning != UNKNOWN_EPOCH:
            kept.insert(0, EpochStart(spanning, Offset(offset)))
        return kept

    def clear(self) -> None:
        self._replace([])

    def _replace(self, entries: list[EpochStart]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._write()

    def _write(self, *, sync: bool = True) -> None:
        # If a power failure loses the first version of the file, it is missing, and the epochs are read from
        # the batches. If it loses a later version, the older file would be taken for the truth: sync that
        # one.
        lines = (f"{epoch} {start}" for epoch, start in self._entries)
        write_lines(self._path, lines, sync=sync and self._path.exists())
        self.is_unwritten = False
        self._unsynced = not sync
        if sync:
            self._dropped = UNKNOWN_EPOCH


def _read(path: Path) -> list[EpochStart] | None:
    if not path.exists():
        return None
    try:
        entries = [line.split(" ") for line in read_lines(path)]
        return [EpochStart(LeaderEpoch(int(epoch)), Offset(int(start))) for epoch, start in entries]
    except (CorruptCheckpoint, ValueError) as error:
        logger.warning("rebuilding the leader epochs from the batches: %s", error)
        return None
