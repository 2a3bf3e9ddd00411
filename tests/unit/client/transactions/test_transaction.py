"""Transactions as we describe them, and which of them hang."""

from headrace.client.transactions.transaction import (
    Enlisted,
    OpenTransaction,
    PartitionEnd,
    PartitionProducer,
    Transaction,
    open_for,
    open_transactions,
    producer_of,
    transaction_of,
    unknown_to_coordinators,
)
from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.describe_producers import ProducerState
from headrace.protocol.schema.describe_transactions import TopicData, TransactionState

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
NODE = Node(3, "h", 9092)
NOW_MS = 1_000_000


def test_an_ongoing_transaction_has_a_duration_and_sorted_partitions() -> None:
    topics = [TopicData(topic="b", partitions=[0]), TopicData(topic="a", partitions=[2, 1])]

    assert transaction_of(state("Ongoing", start_ms=400_000, topics=topics), NODE, NOW_MS) == Transaction(
        transactional_id="id",
        state="Ongoing",
        coordinator=Coordinator(id=3, host="h", port=9092),
        producer_id=7,
        producer_epoch=2,
        timeout_ms=60_000,
        start_ms=400_000,
        duration_ms=600_000,
        topics=(Enlisted(topic="a", partitions=(1, 2)), Enlisted(topic="b", partitions=(0,))),
    )


def test_a_transaction_that_has_ended_has_no_duration() -> None:
    found = transaction_of(state("CompleteCommit", start_ms=400_000), NODE, NOW_MS)

    assert (found.start_ms, found.duration_ms, found.partitions) == (400_000, None, frozenset())


def test_a_transactional_id_without_a_transaction_has_no_start() -> None:
    found = transaction_of(state("Empty", start_ms=-1), NODE, NOW_MS)

    assert (found.start_ms, found.duration_ms) == (None, None)


def test_a_coordinator_whose_clock_is_ahead_makes_no_duration_negative() -> None:
    assert transaction_of(state("Ongoing", start_ms=NOW_MS + 5), NODE, NOW_MS).duration_ms == 0


def test_numbers_that_a_leader_does_not_know_are_none() -> None:
    found = producer_of(ProducerState(producer_id=7, producer_epoch=0, coordinator_epoch=-1))

    assert found == PartitionProducer(
        producer_id=7,
        producer_epoch=0,
        last_sequence=None,
        last_timestamp_ms=None,
        coordinator_epoch=None,
        start_offset=None,
    )


def test_only_producers_with_a_start_offset_have_an_open_transaction() -> None:
    producers = {A1: [producer(8, start_offset=5), producer(7, start_offset=0)], A0: [producer(9)]}

    found = list(open_transactions(producers, NOW_MS))

    assert [(each.topic_partition, each.producer_id, each.start_offset) for each in found] == [
        (A1, 7, 0),
        (A1, 8, 5),
    ]


def test_a_partition_without_a_marker_is_aborted_with_coordinator_epoch_0() -> None:
    producers = {A0: [producer(7, start_offset=0), producer(8, start_offset=1, coordinator_epoch=4)]}

    assert [each.coordinator_epoch for each in open_transactions(producers, NOW_MS)] == [0, 4]


def test_a_transaction_is_left_out_until_it_is_open_for_long_enough() -> None:
    producers = {
        A0: [
            producer(7, start_offset=0, last_timestamp_ms=NOW_MS - 100),
            producer(8, start_offset=1, last_timestamp_ms=NOW_MS - 99),
            producer(9, start_offset=2),
        ]
    }

    found = open_for(open_transactions(producers, NOW_MS), 100)

    assert [each.producer_id for each in found] == [7, 9]  # for how long 9 is open is not known


def test_a_transaction_that_its_coordinator_has_in_this_partition_is_not_hanging() -> None:
    for name in ("Ongoing", "PrepareCommit", "PrepareAbort"):
        known = transaction_of(state(name, topics=[TopicData(topic="a", partitions=[0])]), NODE, NOW_MS)
        assert unknown_to_coordinators([opened(A0, 7)], [known]) == []


def test_a_transaction_that_is_ongoing_in_other_partitions_only_is_hanging() -> None:
    known = transaction_of(state("Ongoing", topics=[TopicData(topic="a", partitions=[1])]), NODE, NOW_MS)

    (found,) = unknown_to_coordinators([opened(A0, 7), opened(A1, 7)], [known])

    assert (found.topic_partition, found.transactional_id) == (A0, "id")


def test_a_transaction_of_a_producer_that_no_coordinator_knows_is_hanging() -> None:
    known = transaction_of(state("Ongoing", topics=[TopicData(topic="a", partitions=[0])]), NODE, NOW_MS)

    (found,) = unknown_to_coordinators([opened(A0, 8)], [known])

    assert (found.producer_id, found.transactional_id) == (8, None)


def state(name: str, *, start_ms: int = 1, topics: list[TopicData] | None = None) -> TransactionState:
    return TransactionState(
        transactional_id="id",
        transaction_state=name,
        transaction_timeout_ms=60_000,
        transaction_start_time_ms=start_ms,
        producer_id=7,
        producer_epoch=2,
        topics=topics or [],
    )


def producer(
    producer_id: int,
    *,
    start_offset: int | None = None,
    last_timestamp_ms: int | None = None,
    coordinator_epoch: int | None = None,
) -> PartitionProducer:
    return PartitionProducer(
        producer_id=producer_id,
        producer_epoch=0,
        last_sequence=0,
        last_timestamp_ms=last_timestamp_ms,
        coordinator_epoch=coordinator_epoch,
        start_offset=start_offset,
    )


def opened(partition: TopicPartition, producer_id: int) -> OpenTransaction:
    (found,) = open_transactions({partition: [producer(producer_id, start_offset=0)]}, NOW_MS)
    return found


def test_offsets_wait_between_the_last_stable_offset_and_the_high_watermark() -> None:
    assert PartitionEnd(high_watermark=9, last_stable_offset=5).waiting == 4
    assert PartitionEnd(high_watermark=9).waiting is None
    assert PartitionEnd(last_stable_offset=5).waiting is None
