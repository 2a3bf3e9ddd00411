"""The producer state of a partition: its producers, their open transactions, and the snapshots on disk."""

import logging
import re
import sys
from bisect import insort
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Final

from headrace.protocol.batch import BatchHeader
from headrace.protocol.ids import Offset, ProducerId
from headrace.storage.config import LogConfig
from headrace.storage.errors import TooManyProducers
from headrace.storage.files import SNAPSHOT, file_name, write_atomically
from headrace.storage.producers.snapshot import CorruptSnapshot, decode_snapshot, encode_snapshot
from headrace.storage.producers.state import AppendedBatch, CompletedTxn, EndMarker, ProducerState

GUARANTEED: Final = 1000  # producers of a partition while all logs together have too many
_LOOKED_AT: Final = 16  # producers with an open transaction that are passed over
_SNAPSHOT_NAME = re.compile(r"(\d{20})\.snapshot")

logger = logging.getLogger(__name__)


class ProducerSpace:
    """How many producers all logs of a broker remember, and may remember, together."""

    def __init__(self, most: int = sys.maxsize) -> None:
        self.most = most
        self.count = 0


class Producers:
    """The producers of one partition as of `next_offset`. Not thread-safe.

    `snapshots` are the offsets of the snapshots in `directory`.

    Producer ids are chosen by clients, so their number is bounded: a new one replaces the one that has not
    written for longest. One that has written lately is not replaced, nor one with an open transaction: its
    retries would be appended twice. A leader refuses new ones instead (`ensure_room`). A follower appends
    what its leader has accepted, and so replaces the same ones.
    """

    def __init__(self, directory: Path, snapshots: Iterable[int] = ()) -> None:
        self._directory = directory
        self._snapshots = sorted(snapshots)
        self.space = ProducerSpace()  # of this log alone, until it is one of a broker
        self._states: OrderedDict[ProducerId, ProducerState] = OrderedDict()  # by their last writes
        self._open_txns: OrderedDict[ProducerId, Offset] = OrderedDict()  # first offsets, ascending
        self._unreplicated: list[CompletedTxn] = []
        self._warned_ms = 0  # that there are too many
        self.next_offset = 0

    def __iter__(self) -> Iterator[ProducerState]:
        return iter(self._states.values())

    def __len__(self) -> int:
        return len(self._states)

    def check(self, batch: BatchHeader) -> AppendedBatch | None:
        """Return the earlier append that a client's `batch` duplicates, or None if it may be appended."""
        state = self._states.get(batch.producer_id)
        return None if state is None else state.check(batch)

    def ensure_room(self, producer_id: ProducerId, now_ms: int, config: LogConfig) -> None:
        """Raise TooManyProducers if a producer is new, and too many others have written lately."""
        count = len(self._states)
        is_crowded = self.space.count >= self.space.most and count >= GUARANTEED
        if producer_id in self._states or (count < config.max_producer_ids and not is_crowded):
            return
        oldest = self._oldest()
        live_ms = config.producer_id_live_ms
        if oldest is None or oldest.written_ms > now_ms - live_ms:
            refused = TooManyProducers(producer_id, count=count, live_ms=live_ms)
            if now_ms > self._warned_ms + live_ms:
                logger.warning("%s: %s", self._directory.name, refused)
                self._warned_ms = now_ms
            raise refused
        self._forget(oldest.producer_id)

    def trim(self, most: int) -> None:
        """Remove the producers that have not written for longest, if there are more than `most`."""
        while len(self._states) > most and (oldest := self._oldest()) is not None:
            self._forget(oldest.producer_id)

    def join(self, space: ProducerSpace) -> None:
        """Count these producers in another space from now on."""
        self.space.count -= len(self._states)
        space.count += len(self._states)
        self.space = space

    def _forget(self, producer_id: ProducerId) -> None:
        del self._states[producer_id]
        self.space.count -= 1

    def _oldest(self) -> ProducerState | None:
        """Return the producer without an open transaction that has not written for longest.

        None if that would be a long search.
        """
        for _ in range(_LOOKED_AT):
            oldest = next(iter(self._states.values()))
            if oldest.txn_first_offset is None:
                return oldest
            self._states.move_to_end(oldest.producer_id)
        return None

    def check_epoch(self, batch: BatchHeader) -> None:
        """Raise InvalidProducerEpoch if the producer epoch of a coordinator's batch is fenced."""
        state = self._states.get(batch.producer_id)
        if state is not None:
            state.check_epoch(batch)

    def check_marker(self, batch: BatchHeader, marker: EndMarker, transaction_version: int) -> None:
        state = self._states.get(batch.producer_id)
        if state is not None:
            state.check_marker(batch, marker, transaction_version)

    def is_in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Return whether the producer has a transaction open on this partition, with this epoch."""
        state = self._states.get(ProducerId(producer_id))
        return state is not None and state.epoch == epoch and state.txn_first_offset is not None

    def record(
        self, batch: BatchHeader, marker: EndMarker | None, now_ms: int | None = None
    ) -> CompletedTxn | None:
        """Update the state for an appended batch; return the transaction that its marker ended, if any.

        Without `now_ms` the batch was appended at some time before.
        """
        state = self._states.get(batch.producer_id)
        if state is None:
            state = self._states[batch.producer_id] = ProducerState(batch.producer_id)
            self.space.count += 1
        else:
            self._states.move_to_end(batch.producer_id)
        completed = None
        if marker is not None:
            completed = state.end_transaction(batch, marker)
            if completed is not None:
                del self._open_txns[batch.producer_id]
                self._unreplicated.append(completed)
        elif batch.is_control:
            state.record_frame(batch)
        else:
            state.record(batch)
            if state.txn_first_offset is not None:
                self._open_txns.setdefault(batch.producer_id, state.txn_first_offset)
        if now_ms is not None:
            state.written_ms = now_ms
        return completed

    def first_open_offset(self) -> Offset | None:
        return next(iter(self._open_txns.values()), None)

    def first_unstable_offset(self, high_watermark: int) -> Offset | None:
        """Return the first offset of the oldest transaction whose marker is not below `high_watermark`."""
        if not self._open_txns and not self._unreplicated:
            return None  # the usual case, for every Fetch
        self._unreplicated = [txn for txn in self._unreplicated if txn.last_offset >= high_watermark]
        undecided = [txn.first_offset for txn in self._unreplicated]
        first_open = self.first_open_offset()
        return min(undecided if first_open is None else [first_open, *undecided], default=None)

    def remove_expired(self, before_ms: int) -> None:
        """Remove producers without an open transaction that have not written since `before_ms`."""
        expired = [
            state.producer_id
            for state in self._states.values()
            if state.last_timestamp < before_ms and state.txn_first_offset is None
        ]
        for producer_id in expired:
            self._forget(producer_id)

    def clear(self, next_offset: int) -> None:
        """Remove all producers; the state is that of `next_offset`."""
        self.space.count -= len(self._states)
        self._states.clear()
        self._open_txns.clear()
        self._unreplicated.clear()
        self.next_offset = next_offset

    def take_snapshot(self) -> None:
        """Write a snapshot of the state at `next_offset`; once per offset, and never for an empty log."""
        if self.next_offset and self.next_offset not in self._snapshots:
            # Not synced: a snapshot that a power failure damages fails its checksum, and an older
            # snapshot or the log itself is used instead.
            path = self._path_of(self.next_offset)
            states = [self._states[state] for state in sorted(self._states)]  # as Kafka does
            write_atomically(path, encode_snapshot(states), sync=False)
            insort(self._snapshots, self.next_offset)

    def restore(self, *, start: int, end: int) -> None:
        """Load the newest readable snapshot of an offset in (start, end]; without one there are no producers.

        Snapshots after `end` are of truncated records, and are removed.
        """
        self.clear(start)
        for offset in reversed(self._snapshots.copy()):
            path = self._path_of(offset)
            if offset > end:
                self._remove(offset)
            elif offset > start:
                try:
                    states = sorted(decode_snapshot(path.read_bytes()), key=_last_offset)
                except CorruptSnapshot as error:
                    logger.warning("ignoring %s: %s", path, error)
                    self._remove(offset)
                    continue
                self._states = OrderedDict((state.producer_id, state) for state in states)
                self.space.count += len(self._states)
                open_txns = [
                    (state.producer_id, state.txn_first_offset)
                    for state in states
                    if state.txn_first_offset is not None
                ]
                self._open_txns = OrderedDict(sorted(open_txns, key=itemgetter(1)))
                self.next_offset = offset
                return

    def remove_snapshots(self, *, keep: set[int]) -> None:
        """Remove all snapshots except the newest one and those at the base offset of a segment in `keep`."""
        for offset in self._snapshots[:-1]:
            if offset not in keep:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self._path_of(offset).unlink(missing_ok=True)
        self._snapshots.remove(offset)

    def _path_of(self, offset: int) -> Path:
        return self._directory / file_name(offset, SNAPSHOT)


def _last_offset(state: ProducerState) -> int:
    return state.recent[-1].last_offset if state.recent else -1


def snapshots_in(names: Iterable[str]) -> list[int]:
    return [int(match[1]) for match in map(_SNAPSHOT_NAME.fullmatch, names) if match]
