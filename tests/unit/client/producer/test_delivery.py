"""Counting what was sent and what became of it."""

from threading import Thread

import pytest
from confluent_kafka import KafkaError, Message

from headrace.client.errors import ClientError, DeliveryFailed, TransactionAborted, Unreachable
from headrace.client.producer.delivery import REMEMBERED, Counts, Ledger, Receipt, Tally, Transaction

TIMED_OUT = KafkaError(KafkaError._MSG_TIMED_OUT)
PURGED = KafkaError(KafkaError._PURGE_QUEUE)
TOO_LARGE = KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)
MESSAGE = Message(topic="t", partition=2, offset=7, timestamp=(1, 1000))


def test_threads_that_count_together_miss_nothing() -> None:
    tally = Tally()
    threads = [Thread(target=lambda: [tally.add() for _ in range(10_000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert tally.total <= 40_000
    assert tally.total == 40_000


def test_all_is_well_if_all_is_acknowledged() -> None:
    Ledger("x:1").check(Counts(sent=5, acknowledged=5, failed=0, waiting=0))


def test_failures_are_raised_with_their_kinds_and_the_first_of_them() -> None:
    ledger = Ledger("x:1")
    for _ in range(REMEMBERED * 2):
        ledger.report(TIMED_OUT, MESSAGE)
    ledger.report(TOO_LARGE, MESSAGE)
    with pytest.raises(DeliveryFailed, match="11 failed") as raised:
        ledger.check(Counts(sent=20, acknowledged=9, failed=11, waiting=0))
    assert raised.value.kinds == {"_MSG_TIMED_OUT": 10, "MSG_SIZE_TOO_LARGE": 1}
    assert len(raised.value.errors) == REMEMBERED


def test_a_failure_is_raised_once() -> None:
    ledger = Ledger("x:1")
    ledger.report(TIMED_OUT, MESSAGE)
    with pytest.raises(DeliveryFailed):
        ledger.check(Counts(sent=1, acknowledged=0, failed=1, waiting=0))
    ledger.check(Counts(sent=2, acknowledged=1, failed=1, waiting=0))


def test_records_purged_by_an_abort_are_no_failures() -> None:
    told: list[ClientError] = []
    ledger = Ledger("x:1", told.append)
    ledger.transaction = transaction = Transaction()
    acknowledged, purged = (Receipt(ledger, lambda _: None) for _ in range(2))
    acknowledged.settle(None, MESSAGE)
    assert acknowledged.error is None
    transaction.aborted = True
    purged.settle(PURGED, MESSAGE)
    ledger.check(Counts(sent=2, acknowledged=1, failed=1, waiting=0))
    assert not told
    for receipt in (acknowledged, purged):
        with pytest.raises(TransactionAborted, match="t: the transaction of the record is aborted"):
            receipt.result()
    ledger.transaction = Transaction()
    assert Receipt(ledger, lambda _: None).error is None


def test_records_that_nobody_heard_of_again_are_told_apart() -> None:
    with pytest.raises(DeliveryFailed, match="2 are unaccounted for"):
        Ledger("x:1").check(Counts(sent=5, acknowledged=3, failed=0, waiting=0))
    with pytest.raises(DeliveryFailed, match="2 are still in flight"):
        Ledger("x:1").check(Counts(sent=5, acknowledged=3, failed=0, waiting=2))


def test_whoever_wants_to_know_hears_of_each_failure() -> None:
    heard: list[ClientError] = []
    ledger = Ledger("x:1", heard.append)
    ledger.report(None, MESSAGE)
    ledger.report(TIMED_OUT, MESSAGE)
    assert [type(each) for each in heard] == [Unreachable]
    assert (ledger.acknowledged, ledger.failed) == (1, 1)


def test_a_receipt_says_where_the_record_is() -> None:
    heard: list[Receipt] = []
    receipt = Receipt(Ledger("x:1"), lambda _timeout_s: None, heard.append)
    assert not receipt.done
    with pytest.raises(TimeoutError):
        receipt.result(timeout_s=0)
    receipt.settle(None, MESSAGE)
    assert receipt.result() == ("t", 2, 7, 1000)
    assert heard == [receipt]


def test_a_receipt_raises_what_went_wrong() -> None:
    receipt = Receipt(Ledger("x:1"), lambda _timeout_s: None)
    receipt.settle(TIMED_OUT, MESSAGE)
    with pytest.raises(Unreachable, match="x:1"):
        receipt.result()
