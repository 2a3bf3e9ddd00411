"""Transactions as their coordinators and the partitions describe them, and which of them hang.

Pure: `admin` sends the requests.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Final

from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import describe_transactions as described
from headrace.protocol.schema.describe_producers import ProducerState

STATES: Final = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
OPEN_STATES: Final = ("Ongoing", "PrepareCommit", "PrepareAbort")  # the markers are not all written yet
FIRST_COORDINATOR_EPOCH: Final = 0  # for partitions in which no coordinator has written a marker


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
            TopicPartition(each.topic, index) for each in self.topics for index in each.partitions
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
class ActiveProducer(PartitionProducer):
    """A producer of a partition, and what coordinators know of the transaction that it has open there.

    `hanging` says whether no coordinator will end that transaction; None if not all coordinators answer.
    """

    duration_ms: int | None = None  # since the last record of the open transaction
    transactional_id: str | None = None
    hanging: bool | None = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that a partition has open; consumers with `read_committed` wait at `start_offset`.

    `duration_ms` is the time since the last record of the transaction, as in Kafka. `transactional_id` is
    None if no coordinator knows the producer id.
    """

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int | None
    duration_ms: int | None
    transactional_id: str | None = None

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def key(self) -> tuple[TopicPartition, int, int]:
        """What tells this transaction from others of the partition, earlier and later ones."""
        return self.topic_partition, self.producer_id, self.start_offset


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
    """Return the transaction that a coordinator describes."""
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
            Enlisted(topic=each.topic, partitions=tuple(sorted(each.partitions)))
            for each in sorted(found.topics, key=lambda each: each.topic)
        ),
    )


def producer_of(found: ProducerState) -> PartitionProducer:
    """Return the producer that a partition leader describes."""
    return PartitionProducer(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        last_sequence=_known(found.last_sequence),
        last_timestamp_ms=_known(found.last_timestamp),
        coordinator_epoch=_known(found.coordinator_epoch),
        start_offset=_known(found.current_txn_start_offset),
    )


def open_transactions(
    producers: Mapping[TopicPartition, Iterable[PartitionProducer]], now_ms: int
) -> Iterator[OpenTransaction]:
    """Yield the transactions that the partitions have open, in the order of partitions and offsets."""
    for partition, of_partition in sorted(producers.items()):
        for each in sorted(of_partition, key=lambda each: each.start_offset or 0):
            if each.start_offset is None:
                continue
            last_ms = each.last_timestamp_ms
            yield OpenTransaction(
                topic=partition.topic,
                partition=partition.partition,
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                coordinator_epoch=(
                    FIRST_COORDINATOR_EPOCH if each.coordinator_epoch is None else each.coordinator_epoch
                ),
                start_offset=each.start_offset,
                last_timestamp_ms=last_ms,
                duration_ms=None if last_ms is None else max(0, now_ms - last_ms),
            )


def open_for(found: Iterable[OpenTransaction], min_duration_ms: int) -> list[OpenTransaction]:
    """Return the transactions that are open for at least so long, or for an unknown time."""
    return [each for each in found if each.duration_ms is None or each.duration_ms >= min_duration_ms]


def unknown_to_coordinators(
    found: Iterable[OpenTransaction], transactions: Iterable[Transaction]
) -> list[OpenTransaction]:
    """Return the open transactions that no coordinator will end, with their transactional id if it is known.

    A coordinator ends a transaction in every partition that it has in its list, whether the outcome is
    decided or not.
    """
    by_producer = {each.producer_id: each for each in transactions}
    hanging = []
    for each in found:
        known = by_producer.get(each.producer_id)
        if known is None:
            hanging.append(each)
        elif each.topic_partition not in known.partitions:
            hanging.append(replace(each, transactional_id=known.transactional_id))
    return hanging


def active_producers(
    producers: Iterable[PartitionProducer],
    found: Iterable[OpenTransaction],
    transactions: Iterable[Transaction] | None,
    hanging: Iterable[OpenTransaction],
) -> list[ActiveProducer]:
    """Return the producers of one partition with their open transactions, and which of those are hanging.

    `transactions` is None if not all coordinators answer.
    """
    ids = {each.producer_id: each.transactional_id for each in transactions or ()}
    durations = {each.producer_id: each.duration_ms for each in found}
    hanging_ids = {each.producer_id for each in hanging}
    active = []
    for each in producers:
        is_open = each.start_offset is not None
        is_hanging = each.producer_id in hanging_ids if transactions is not None else None
        active.append(
            ActiveProducer(
                **asdict(each),
                duration_ms=durations.get(each.producer_id) if is_open else None,
                transactional_id=ids.get(each.producer_id),
                hanging=is_hanging if is_open else False,
            )
        )
    return active


def _known(number: int) -> int | None:
    return None if number < 0 else number
