"""Transactions as their coordinators and the partitions describe them.

Pure: `admin` sends the requests.
"""

from dataclasses import dataclass
from typing import Final

from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import describe_transactions as described
from headrace.protocol.schema.describe_producers import ProducerState

STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")  # the markers are not all written yet


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSummary:
    """A line in the list of transactions; `coordinator` is the id of the broker that lists it."""

    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Enlisted:
    """The partitions of one topic that belong to a transaction and have no marker yet."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """A transactional id, its producer and its latest transaction, as the coordinator has them.

    `start_ms` is None before the first transaction, and `duration_ms` is None unless one is open.
    """

    transactional_id: str
    state: str
    coordinator: Coordinator
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_ms: int | None
    duration_ms: int | None
    topics: tuple[Enlisted, ...]

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(topic.topic, index) for topic in self.topics for index in topic.partitions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionProducer:
    """A producer whose state a partition keeps; None is unknown.

    `start_offset` is the first offset of its open transaction, None if it has none. `coordinator_epoch` is
    that of the last marker.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    start_offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEnd:
    """The end of a partition for consumers with `read_uncommitted` and with `read_committed`.

    None is the offset of a partition whose leader does not answer. The last stable offset is lower than the
    high watermark while a transaction is open between them.
    """

    high_watermark: int | None = None
    last_stable_offset: int | None = None

    @property
    def waiting(self) -> int | None:
        """The number of offsets that consumers with `read_committed` do not get yet."""
        if self.high_watermark is None or self.last_stable_offset is None:
            return None
        return max(0, self.high_watermark - self.last_stable_offset)


def transaction_of(found: described.TransactionState, node: Node, now_ms: int) -> Transaction:
    start_ms = _known(found.transaction_start_time_ms)
    is_open = start_ms is not None and found.transaction_state in OPEN_STATES
    return Transaction(
        transactional_id=found.transactional_id,
        state=found.transaction_state,
        coordinator=Coordinator(id=node.id, host=node.host, port=node.port),
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        start_ms=start_ms,
        duration_ms=max(0, now_ms - (start_ms or 0)) if is_open else None,
        topics=tuple(
            Enlisted(topic=topic.topic, partitions=tuple(sorted(topic.partitions)))
            for topic in sorted(found.topics, key=lambda each: each.topic)
        ),
    )


def producer_of(found: ProducerState) -> PartitionProducer:
    return PartitionProducer(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        last_sequence=_known(found.last_sequence),
        last_timestamp_ms=_known(found.last_timestamp),
        coordinator_epoch=_known(found.coordinator_epoch),
        start_offset=_known(found.current_txn_start_offset),
    )


def _known(number: int) -> int | None:
    return None if number < 0 else number
