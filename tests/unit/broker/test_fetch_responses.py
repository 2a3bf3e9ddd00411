"""Fetch responses that list aborted transactions: complete, and encoded in steps if there are many."""

import pytest

from headrace.broker.handlers.fetch import ENCODED_AT_ONCE, _ReadResult, _reply_with_data
from headrace.broker.meters import TopicMeter
from headrace.broker.records.fetch_sessions import Plan, SessionPartition
from headrace.broker.results import Encoded
from headrace.broker.slices import STEP, at_once
from headrace.protocol.schema.fetch import AbortedTransaction, FetchResponse, PartitionData
from headrace.storage.txn_index import AbortedTxn

VERSION = 17


def read(counts: list[int]) -> tuple[Plan, _ReadResult]:
    """Partitions with so many aborted transactions each, as they were read."""
    found = _ReadResult([], [])
    for partition, count in enumerate(counts):
        entry = SessionPartition("", bytes(16), partition, 0, 1 << 20, -1)
        listed: list[AbortedTransaction] = []
        data = PartitionData(
            partition_index=partition,
            high_watermark=9,
            last_stable_offset=9,
            log_start_offset=0,
            aborted_transactions=listed,
            records=b"records",
        )
        if count:
            found.aborted.append((listed, [AbortedTxn(each, 2 * each, 0, 0) for each in range(count)]))
        found.add(entry, data, TopicMeter())
    return Plan([entry for entry, _ in found.entries], None, incremental=False), found


@pytest.mark.parametrize("counts", [[0], [3, 0], [ENCODED_AT_ONCE + 1], [0, 2, ENCODED_AT_ONCE, 1]])
def test_every_aborted_transaction_is_listed_with_its_partition(counts: list[int]) -> None:
    plan, found = read(counts)
    made = at_once(_reply_with_data(plan, found, VERSION, None))
    assert isinstance(made, Encoded) == (sum(counts) > ENCODED_AT_ONCE)
    body = b"".join(made.body if isinstance(made, Encoded) else made.encode(VERSION))
    (topic,) = FetchResponse.decode(memoryview(body), VERSION).responses

    assert [
        [(each.producer_id, each.first_offset) for each in partition.aborted_transactions or ()]
        for partition in topic.partitions
    ] == [[(each, 2 * each) for each in range(count)] for count in counts]


def test_a_long_list_is_made_encoded_and_freed_in_steps() -> None:
    plan, found = read([10_000])
    steps = sum(1 for _ in _reply_with_data(plan, found, VERSION, None))

    assert steps >= 10_000 / STEP
    assert found.aborted[0][0] == []  # it was emptied in steps as well
