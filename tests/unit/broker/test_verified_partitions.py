"""A verification of very many partitions is one request, and does not hold the event loop."""

from headrace.broker.handlers.add_partitions_to_txn import _refused
from headrace.broker.slices import STEP, at_once
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition

MANY = 100 * STEP


def test_partitions_that_are_not_in_the_transaction_are_abortable() -> None:
    partitions = [TopicPartition("orders", index) for index in range(3)]

    missing = at_once(_refused(partitions, ErrorCode.TRANSACTION_ABORTABLE, partitions[1:].__contains__))

    assert missing == {partitions[0]: ErrorCode.TRANSACTION_ABORTABLE}


def test_others_have_their_turn_after_every_slice() -> None:
    partitions = [TopicPartition("orders", index) for index in range(MANY)]

    turns = sum(1 for _ in _refused(partitions, ErrorCode.TRANSACTION_ABORTABLE, frozenset().__contains__))

    assert turns == MANY / STEP
