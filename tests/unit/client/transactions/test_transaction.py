"""Transactions as we describe them."""

from headrace.client.transactions.transaction import (
    Enlisted,
    PartitionEnd,
    PartitionProducer,
    Transaction,
    producer_of,
    transaction_of,
)
from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.schema.describe_producers import ProducerState
from headrace.protocol.schema.describe_transactions import TopicData, TransactionState

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


def test_offsets_wait_between_the_last_stable_offset_and_the_high_watermark() -> None:
    assert PartitionEnd(high_watermark=9, last_stable_offset=5).waiting == 4
    assert PartitionEnd(high_watermark=9).waiting is None
    assert PartitionEnd(last_stable_offset=5).waiting is None
