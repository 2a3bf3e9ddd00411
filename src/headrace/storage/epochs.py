"""Which leader wrote what: the first offset of every leader epoch, in `leader-epoch-checkpoint`.

A follower that comes back asks the leader where its own last epoch ended and truncates to there: that
is how two logs that went separate ways become one again.
"""

import logging
from bisect import bisect_right
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from headrace.storage.checkpoints import CorruptCheckpoint, read_lines, write_lines
from headrace.storage.files import sync_file

FILE_NAME = "leader-epoch-checkpoint"
UNKNOWN_EPOCH = -1
UNKNOWN_OFFSET = -1

logger = logging.getLogger(__name__)


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochs:
    """Epochs and their first offsets, both strictly ascending; every change is in the file on return.

    One that only adds an epoch is on the disk after `sync`, which comes before the log's recovery point
    moves: until then the batches behind that point tell the same. So a broker that comes to lead a thousand
    partitions does not wait for its disk a thousand times.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        entries = _read(self._path)
        self.lost = entries is None  # there was no file, or none that could be read
        self._entries = entries or []
        self._unsynced = False

    @property
    def entries(self) -> tuple[EpochStart, ...]:
        return tuple(self._entries)

    @property
    def latest(self) -> int:
        return self._entries[-1].epoch if self._entries else UNKNOWN_EPOCH

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that `epoch` wrote `start_offset`; what is said to have begun there or later wrote nothing.

        Epochs 4 from 0 and 5 from 10, a term in which nothing was written: then what epoch 4 wrote at
        offset 10, taken over from another leader, shows that 5 never began there.
        """
        if epoch == self.latest:
            return
        kept = len(self._entries)
        while kept and self._entries[kept - 1].start_offset >= start_offset:
            kept -= 1
        known = kept and self._entries[kept - 1].epoch >= epoch
        adds = kept == len(self._entries)
        if adds and known:
            return
        del self._entries[kept:]
        if not known:
            self._entries.append(EpochStart(epoch, start_offset))
        self._write(sync=not adds)

    def sync(self) -> None:
        """Bring the file to the disk if it is not there yet. May run in another thread than the changes."""
        if self._unsynced:
            self._unsynced = False  # first: what changes from now on needs another one
            with suppress(FileNotFoundError):  # the log has been deleted meanwhile
                sync_file(self._path)

    def end_of(self, epoch: int, log_end_offset: int) -> EpochStart:
        """The largest known epoch up to `epoch`, with the offset it ended before.

        With epochs 1 from 5, 3 from 10 and a log end of 15: end_of(1) and end_of(2) are (1, 10),
        end_of(3) is (3, 15), and end_of(4) is (-1, -1): nothing is known of it. Epoch 0 is older than
        all that is left of the log; end_of(0) is (0, 5), so that its follower goes on from the start.
        """
        if epoch == UNKNOWN_EPOCH or epoch > self.latest:
            return EpochStart(UNKNOWN_EPOCH, UNKNOWN_OFFSET)
        after = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        end = self._entries[after].start_offset if after < len(self._entries) else log_end_offset
        return EpochStart(self._entries[after - 1].epoch if after else epoch, end)

    def at(self, offset: int) -> int:
        """The epoch that wrote `offset`, or -1."""
        after = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[after - 1].epoch if after else UNKNOWN_EPOCH

    def truncate_from_end(self, offset: int) -> None:
        """Forget the epochs that began at or after `offset`."""
        kept = [entry for entry in self._entries if entry.start_offset < offset]
        self._replace(kept)

    def truncate_from_start(self, offset: int) -> None:
        """Forget the epochs that ended before `offset`; the one that spans it now begins there."""
        kept = [entry for entry in self._entries if entry.start_offset > offset]
        spanning = self.at(offset)
        if spanning != UNKNOWN_EPOCH:
            kept.insert(0, EpochStart(spanning, offset))
        self._replace(kept)

    def clear(self) -> None:
        self._replace([])

    def _replace(self, entries: list[EpochStart]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._write()

    def _write(self, *, sync: bool = True) -> None:
        # A first file that a power cut takes away is missed, and the batches tell all; one that an older
        # version came back in place of would not be.
        lines = (f"{epoch} {start}" for epoch, start in self._entries)
        write_lines(self._path, lines, sync=sync and self._path.exists())
        self._unsynced = not sync


def _read(path: Path) -> list[EpochStart] | None:
    if not path.exists():
        return None
    try:
        return [EpochStart(*map(int, line.split(" "))) for line in read_lines(path)]
    except (CorruptCheckpoint, ValueError, TypeError) as error:
        logger.warning("reading the epochs off the batches: %s", error)
        return None
