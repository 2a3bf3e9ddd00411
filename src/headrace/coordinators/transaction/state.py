"""The state of one transactional id, and its legal transitions."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final, Self

from headrace.coordinators.decision import Producer, check_transition
from headrace.protocol.ids import TopicPartition

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_TIMESTAMP: Final = -1
NO_TIMEOUT_MS: Final = 2**31 - 1  # of a producer with two-phase commit
LAST_EPOCH: Final = 2**15 - 1  # never given to a producer, so that the coordinator can always fence it
EPOCH_BUMP_VERSION: Final = 2  # the first transaction.version that bumps the epoch with every transaction


class TransactionState(IntEnum):
    """Kafka's states with Kafka's numbers. Kafka's Dead and PrepareEpochFence are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5

    @property
    def kafka_name(self) -> str:
        """The name as ListTransactions has it, such as PrepareCommit."""
        return self.name.title().replace("_", "")

    @property
    def is_commit(self) -> bool:
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome is decided, and the markers are still to be written."""
        return self in {TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}


_AFTER_COMPLETION: Final = frozenset(
    {TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.PREPARE_ABORT}
)
LEGAL_TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    TransactionState.EMPTY: _AFTER_COMPLETION,
    TransactionState.ONGOING: frozenset(
        {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT}
    ),
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.COMPLETE_COMMIT}),
    TransactionState.PREPARE_ABORT: frozenset({TransactionState.COMPLETE_ABORT}),
    TransactionState.COMPLETE_COMMIT: _AFTER_COMPLETION,
    TransactionState.COMPLETE_ABORT: _AFTER_COMPLETION,
}
"""With transaction version 2 a producer may abort before any partition is added: it cannot know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id, its producer, and its latest transaction. Methods return the next state."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIMESTAMP
    last_update_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after this transaction: the epochs of the current one are exhausted."""
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    """The epoch before the latest bump, to recognize a retry. Not in the log, as in Kafka."""
    client_version: int = 0
    """The transaction version of the latest request."""

    @property
    def producer(self) -> Producer:
        """The producer id and epoch of the markers, and of the records while the transaction is ongoing."""
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def next_producer(self) -> Producer:
        """The producer id and epoch with which the client continues after this transaction."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return Producer(self.next_producer_id, 0)
        return self.producer

    @property
    def is_epoch_exhausted(self) -> bool:
        return self.producer_epoch >= LAST_EPOCH - 1

    def initialized(
        self, producer: Producer, *, last_producer_epoch: int, timeout_ms: int, now_ms: int
    ) -> Self:
        """InitProducerId: the producer starts with another epoch, or with another producer id."""
        return self._moved(
            TransactionState.EMPTY,
            now_ms,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            previous_producer_id=self.producer_id,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            start_ms=NO_TIMESTAMP,
            partitions=frozenset(),
        )

    def with_partitions(self, added: frozenset[TopicPartition], client_version: int, now_ms: int) -> Self:
        """AddPartitionsToTxn: begin a transaction, or add partitions to the ongoing one."""
        is_ongoing = self.state is TransactionState.ONGOING
        return self._moved(
            TransactionState.ONGOING,
            now_ms,
            partitions=self.partitions | added,
            start_ms=self.start_ms if is_ongoing else now_ms,
            client_version=client_version,
        )

    def prepared(self, *, commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> Self:
        """EndTxn: decide the outcome. With transaction version 2 the epoch is bumped."""
        bumps = client_version >= EPOCH_BUMP_VERSION
        is_ongoing = self.state is TransactionState.ONGOING
        return self._moved(
            TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT,
            now_ms,
            producer_epoch=min(self.producer_epoch + bumps, LAST_EPOCH),
            last_producer_epoch=self.producer_epoch if bumps else self.last_producer_epoch,
            next_producer_id=next_producer_id,
            start_ms=self.start_ms if is_ongoing else now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Self:
        """All markers are written."""
        is_commit = self.state is TransactionState.PREPARE_COMMIT
        producer_id, producer_epoch = self.next_producer
        return self._moved(
            TransactionState.COMPLETE_COMMIT if is_commit else TransactionState.COMPLETE_ABORT,
            now_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
        )

    def _moved(self, target: TransactionState, now_ms: int, **changes: object) -> Self:
        check_transition(LEGAL_TRANSITIONS, self.state, target, f"transaction {self.transactional_id!r}")
        return replace(self, state=target, last_update_ms=now_ms, **changes)  # type: ignore[arg-type]
