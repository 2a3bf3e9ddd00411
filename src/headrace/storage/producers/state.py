"""The state of one producer on one partition: it finds duplicates, sequence gaps and fenced epochs.

Pure: no clock, no file, no lock. `check` and `check_marker` decide and change nothing; `record`,
`end_transaction` and `record_frame` change the state, and are all that a replay of the log calls.
"""

from typing import NamedTuple

from headrace.protocol.batch import NO_PRODUCER_EPOCH, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader, add_sequence
from headrace.protocol.ids import Offset, ProducerId
from headrace.storage import errors

REMEMBERED_BATCHES = 5  # an idempotent producer has at most five requests in flight
NO_COORDINATOR_EPOCH = -1
EPOCH_BUMP_VERSION = 2  # the transaction version from which on markers have a higher epoch than the records


class AppendedBatch(NamedTuple):
    """The sequence numbers, offsets and timestamp of a batch in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class EndMarker(NamedTuple):
    """The outcome of a transaction, as its coordinator has written it to the log."""

    commit: bool
    coordinator_epoch: int


class CompletedTxn(NamedTuple):
    """A transaction that has ended on this partition: from its first record to its marker."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    aborted: bool


class ProducerState:
    """One producer id on one partition."""

    __slots__ = (
        "coordinator_epoch",
        "epoch",
        "last_timestamp",
        "producer_id",
        "recent",
        "txn_first_offset",
        "written_ms",
    )

    def __init__(self, producer_id: ProducerId) -> None:
        self.producer_id = producer_id
        self.epoch = NO_PRODUCER_EPOCH
        self.coordinator_epoch = NO_COORDINATOR_EPOCH
        self.last_timestamp = NO_TIMESTAMP
        self.txn_first_offset: Offset | None = None
        self.recent: tuple[AppendedBatch, ...] = ()  # a deque takes 600 bytes
        self.written_ms = (
            NO_TIMESTAMP  # when it last wrote: the broker's time, or after a restart `last_timestamp`
        )

    def check(self, batch: BatchHeader) -> AppendedBatch | None:
        """Return the earlier append that `batch` duplicates, or None if the batch is new; change nothing.

        An unknown producer may start with any sequence: its earlier records may have been deleted.
        """
        self.check_epoch(batch)
        if batch.producer_epoch == self.epoch:
            for appended in self.recent:
                if appended[:2] == (batch.base_sequence, batch.last_sequence):
                    return appended
        expected = self._next_sequence(batch.producer_epoch)
        if expected is not None and batch.base_sequence != expected:
            raise errors.OutOfOrderSequence(self.producer_id, expected=expected, got=batch.base_sequence)
        if not batch.is_transactional and self.txn_first_offset is not None:
            raise errors.InvalidTxnState(
                f"producer {self.producer_id} has a transaction open since {self.txn_first_offset}, and "
                "the batch is not transactional (INVALID_TXN_STATE)"
            )
        return None

    def check_epoch(self, batch: BatchHeader) -> None:
        """Raise InvalidProducerEpoch if the epoch of `batch` is fenced; change nothing."""
        if batch.producer_epoch < self.epoch:
            raise errors.InvalidProducerEpoch(self.producer_id, current=self.epoch, got=batch.producer_epoch)

    def check_marker(self, batch: BatchHeader, marker: EndMarker, transaction_version: int) -> None:
        """Raise if the producer epoch or the coordinator epoch of a marker is fenced; change nothing.

        With transaction version 2 the marker has a higher epoch than the records. A marker with their epoch
        belongs to an earlier transaction, unless no transaction is open: then it is a retry.
        """
        self.check_epoch(batch)
        is_open = self.txn_first_offset is not None
        if transaction_version >= EPOCH_BUMP_VERSION and is_open and batch.producer_epoch == self.epoch:
            raise errors.InvalidProducerEpoch(
                self.producer_id, current=self.epoch + 1, got=batch.producer_epoch
            )
        if marker.coordinator_epoch < self.coordinator_epoch:
            raise errors.TransactionCoordinatorFenced(
                self.producer_id, current=self.coordinator_epoch, got=marker.coordinator_epoch
            )

    def record(self, batch: BatchHeader) -> None:
        """Update the state for a data batch that is in the log."""
        self._enter_epoch(batch.producer_epoch)
        self.last_timestamp = self.written_ms = batch.max_timestamp
        appended = AppendedBatch(
            batch.base_sequence,
            batch.last_sequence,
            batch.base_offset,
            batch.last_offset,
            batch.max_timestamp,
        )
        self.recent = (*self.recent[1 - REMEMBERED_BATCHES :], appended)
        if batch.is_transactional and self.txn_first_offset is None:
            self.txn_first_offset = batch.base_offset

    def end_transaction(self, batch: BatchHeader, marker: EndMarker) -> CompletedTxn | None:
        """Update the state for a marker; return the transaction that it ended, or None if none was open."""
        self._enter_epoch(batch.producer_epoch)
        self.coordinator_epoch = marker.coordinator_epoch
        self.last_timestamp = self.written_ms = batch.max_timestamp
        if self.txn_first_offset is None:
            return None
        first_offset, self.txn_first_offset = self.txn_first_offset, None
        return CompletedTxn(self.producer_id, first_offset, batch.base_offset, aborted=not marker.commit)

    def record_frame(self, batch: BatchHeader) -> None:
        """Update the state for a marker of which compaction has left only the header."""
        self._enter_epoch(batch.producer_epoch)
        self.last_timestamp = self.written_ms = batch.max_timestamp

    def _enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.recent = ()

    def _next_sequence(self, epoch: int) -> int | None:
        """Return the sequence that must come next, or None if any may."""
        if self.epoch == NO_PRODUCER_EPOCH:
            return None
        if epoch != self.epoch or not self.recent or self.recent[-1].last_sequence == NO_SEQUENCE:
            return 0
        return add_sequence(self.recent[-1].last_sequence, 1)
