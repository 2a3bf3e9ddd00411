"""Fetch responses that list aborted transactions: complete, and encoded in steps if there are many."""

import pytest

from headrace.broker.handlers.fetch import ENCODED_AT_ONCE, _response
from headrace.broker.meters import TopicMeter
from headrace.broker.records.fetch_sessions import Plan, SessionPartition
from headrace.broker.records.reads import Read
from headrace.broker.replicas.committed_log import Fetched
from headrace.broker.results import Encoded
from headrace.broker.slices import FREED_TOGETHER, STEP, at_once
from headrace.protocol.schema.fetch import FetchResponse
from headrace.storage.txn_index import AbortedTxn

VERSION = 17


def read(counts: list[int]) -> tuple[Plan, Read]:
    """Partitions with so many aborted transactions each, as they were read."""
    result = Read()
    for partition, count in enumerate(counts):
        entry = SessionPartition("", bytes(16), partition, 0, 1 << 20, -1)
        aborted = [AbortedTxn(number, 2 * number, 0, 0) for number in range(count)]
        result.add(entry, Fetched(b"records", 9, 9, 0, aborted), TopicMeter())
    return Plan([entry for entry, _ in result.parts], None, incremental=False), result


@pytest.mark.parametrize("counts", [[0], [3, 0], [ENCODED_AT_ONCE + 1], [0, 2, ENCODED_AT_ONCE, 1]])
def test_every_aborted_transaction_is_listed_with_its_partition(counts: list[int]) -> None:
    plan, result = read(counts)
    made = at_once(_response(plan, result, VERSION))
    assert isinstance(made, Encoded) == (sum(counts) > ENCODED_AT_ONCE)
    body = b"".join(made.body if isinstance(made, Encoded) else made.encode(VERSION))
    (topic,) = FetchResponse.decode(memoryview(body), VERSION).responses

    assert [
        [(each.producer_id, each.first_offset) for each in partition.aborted_transactions or ()]
        for partition in topic.partitions
    ] == [[(each, 2 * each) for each in range(count)] for count in counts]


def test_a_long_list_is_made_encoded_and_freed_in_steps() -> None:
    plan, result = read([10_000])
    steps = sum(1 for _ in _response(plan, result, VERSION))

    assert steps >= 10_000 / STEP + 10_000 / FREED_TOGETHER
