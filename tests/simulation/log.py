"""One partition's log in memory, with the rules of `headrace.storage.log` as far as replicas depend on them.

Epochs and producers are the real ones. What is written outlives its process; what is not flushed is lost, or
some of it, when the machine goes down.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any, NamedTuple

from headrace.protocol.errors import InvalidRecord
from headrace.storage.append.inspection import PreparedBatch
from headrace.storage.checks.damage import Damage
from headrace.storage.epochs import LeaderEpochs
from headrace.storage.errors import OffsetOutOfRange
from headrace.storage.log import Appended
from headrace.storage.producers.producers import Producers
from headrace.storage.producers.state import EndMarker
from headrace.storage.txn_index import AbortedTxn

_SYNCED = 0.1  # how likely the system is to have brought all to the disk, after each write


class Batch(NamedTuple):
    """One value on its way into a log, or in it; with as much of a batch's header as a log looks at."""

    value: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_offset: int = -1
    leader_epoch: int = -1
    is_transactional: bool = False
    marker: EndMarker | None = None
    records: tuple[tuple[bytes | None, bytes | None], ...] = ()  # of a coordinator

    @property
    def is_control(self) -> bool:
        return self.marker is not None

    @property
    def has_producer(self) -> bool:
        return self.producer_id >= 0

    @property
    def next_offset(self) -> int:
        return self.base_offset + 1

    @property
    def max_timestamp(self) -> int:
        return 0

    @property
    def last_sequence(self) -> int:
        return self.base_sequence

    @property
    def last_offset(self) -> int:
        return self.base_offset


Records = tuple[Batch, ...]
"""What travels in place of bytes; one batch counts as one byte."""


class MemoryEpochs(LeaderEpochs):
    """The real thing without its file."""

    def __init__(self) -> None:
        super().__init__(Path(), has_file=False)

    def _write(self, *, sync: bool = True) -> None:
        """There is no file."""


class SimLog:
    """One partition's log: the face of `headrace.storage.log.Log`, as far as replicas need it."""

    offline: str | None = None
    damaged: Mapping[int, Damage] = MappingProxyType({})
    suspects: frozenset[int] = frozenset()
    config: Any = None

    def __init__(self, now_ms: Callable[[], int], random: Random) -> None:
        self.now_ms = now_ms
        self.epochs = MemoryEpochs()
        self.log_start_offset = 0
        self.changes = 0  # how often anything in it has changed
        self.cuts = 0  # how often something was removed from its end
        self._random = random
        self._base = 0  # the offset of the first batch
        self._batches: list[Batch] = []
        self._flushed = 0  # the offset that everything before is on the disk
        self.producers = Producers(Path())  # the real thing; it takes no snapshots here
        self._aborted: list[AbortedTxn] = []

    @property
    def log_end_offset(self) -> int:
        return self._base + len(self._batches)

    def at(self, offset: int) -> Batch | None:
        """What stands at `offset`, if that is there."""
        place = offset - self._base
        return self._batches[place] if 0 <= place < len(self._batches) else None

    @property
    def batches(self) -> list[Batch]:
        return self._batches[max(0, self.log_start_offset - self._base) :]

    def suspect(self, offset: int) -> None:
        """Do nothing: segments are not damaged here, so a check would find nothing."""

    # -- as Log does it ------------------------------------------------------------------------

    def use_config(self, config: Any) -> None:
        self.config = config

    def begin_epoch(self, epoch: int) -> None:
        self.epochs.begin(epoch, self.log_end_offset)

    def prepare(self, data: Any) -> PreparedBatch:
        (batch,) = data
        return PreparedBatch(data, batch, self.config, len(data))

    def append_prepared(self, prepared: PreparedBatch, *, leader_epoch: int) -> Appended:
        batch: Any = prepared.header
        if batch.has_producer:
            written = self.producers.check(batch)
            if written is not None:
                return Appended(written.base_offset, written.last_offset, -1, duplicate=True)
        return self._append_at_end(batch, leader_epoch)

    def append_internal(self, data: Any, *, leader_epoch: int, transaction_version: int = 0) -> Appended:
        (batch,) = data
        if batch.marker is not None:
            self.producers.check_marker(batch, batch.marker, transaction_version)
        elif batch.has_producer:
            self.producers.check_epoch(batch)
        return self._append_at_end(batch, leader_epoch)

    def _append_at_end(self, batch: Any, leader_epoch: int) -> Appended:
        end = self.log_end_offset
        self._write([batch._replace(base_offset=end, leader_epoch=leader_epoch)])
        return Appended(end, end, -1)

    def append_as_follower(self, data: Any, *, leader_epoch: int) -> Appended:
        assert all(batch.leader_epoch <= leader_epoch for batch in data), (data, leader_epoch)
        if data[0].base_offset != self.log_end_offset:
            raise InvalidRecord(f"{data[0].base_offset} cannot follow {self.log_end_offset - 1}")
        self._write(data)
        return Appended(data[0].base_offset, data[-1].base_offset, -1)

    def _write(self, batches: Any) -> None:
        for batch in batches:
            self._batches.append(batch)
            self.epochs.assign(batch.leader_epoch, batch.base_offset)
            self._remember(batch)
        self.changes += 1
        if self._random.random() < _SYNCED:
            self._flushed = self.log_end_offset

    def _remember(self, batch: Any) -> None:
        if batch.has_producer:
            completed = self.producers.record(batch, batch.marker)
            if completed is not None and completed.aborted:
                self._aborted.append(
                    AbortedTxn(
                        completed.producer_id,
                        completed.first_offset,
                        completed.last_offset,
                        batch.base_offset,
                    )
                )

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        max_offset: int | None = None,
        at_least_one: bool = True,
        cached_only: bool = False,  # noqa: ARG002  everything is in memory
    ) -> Any:
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise OffsetOutOfRange(offset, start=self.log_start_offset, end=end)
        first = offset - self._base
        count = max(max_bytes, 1 if at_least_one else 0)
        last = first + count if max_offset is None else min(first + count, max_offset - self._base)
        return tuple(self._batches[first : max(first, last)])

    def truncate_to(self, offset: int) -> None:
        if offset >= self.log_end_offset:
            return
        if offset < self._base:
            self.truncate_fully(offset)
            return
        del self._batches[offset - self._base :]
        self._end_at(offset)
        self._forget_producers()
        for batch in self._batches:
            self._remember(batch)

    def truncate_fully(self, offset: int) -> None:
        self._batches.clear()
        self._base = self.log_start_offset = offset
        self._end_at(offset)
        self.epochs.clear()
        self._forget_producers()

    def _forget_producers(self) -> None:
        self.producers.clear(0)
        self._aborted.clear()

    def _end_at(self, offset: int) -> None:
        self.changes += 1
        self.cuts += 1
        self._flushed = min(self._flushed, offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.epochs.truncate_from_end(offset)

    def delete_records_before(self, offset: int) -> None:
        if not 0 <= offset <= self.log_end_offset:
            raise OffsetOutOfRange(offset, start=self.log_start_offset, end=self.log_end_offset)
        if offset > self.log_start_offset:
            self.log_start_offset = offset
            self.epochs.truncate_from_start(offset)
            self.changes += 1

    def last_stable_offset(self, high_watermark: int) -> int:
        unstable = self.producers.first_unstable_offset(high_watermark)
        return (
            high_watermark if unstable is None else min(max(unstable, self.log_start_offset), high_watermark)
        )

    def aborted_transactions(self, start: int, _end: object) -> list[AbortedTxn]:
        return [each for each in self._aborted if each.last_offset >= start]

    # -- seeds ---------------------------------------------------------------------------------

    @property
    def has_files(self) -> bool:
        return self.log_end_offset > 0

    def roll(self) -> None:
        """There are no segments here: a seed may end at any offset."""

    def seeded(self, end_offset: int, now_ms: Callable[[], int]) -> "SimLog":
        """Return another log with the records before `end_offset`, all of them on the disk."""
        log = SimLog(now_ms, self._random)
        log._base, log.log_start_offset = self._base, self.log_start_offset
        for batch in self._batches[: end_offset - self._base]:
            log._batches.append(batch)
            log.epochs.assign(batch.leader_epoch, batch.base_offset)
            log._remember(batch)
        log.reopen()
        log._flushed = log.log_end_offset
        return log

    # -- what becomes of it --------------------------------------------------------------------

    def flush(self) -> None:
        self._flushed = self.log_end_offset

    def lose_tail(self) -> None:
        """The machine has gone down: some of what was not flushed is gone."""
        end = self.log_end_offset
        if self._flushed < end:
            self.truncate_to(self._random.randint(max(self._flushed, self._base), end))

    def reopen(self) -> None:
        """Open it anew, as `headrace.storage.recovery` does: epochs that wrote nothing are forgotten."""
        self.epochs.keep_within(self.log_start_offset, self.log_end_offset)
