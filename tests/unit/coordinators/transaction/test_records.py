"""The records of `__transaction_state`, byte by byte as Kafka writes them."""

import pytest

from headrace.coordinators.transaction.records import TransactionRecord, decode_record, encode_record
from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.errors import ProtocolError
from headrace.protocol.ids import TopicPartition

ONGOING = Transaction(
    transactional_id="pay",
    producer_id=4000,
    producer_epoch=3,
    timeout_ms=60_000,
    state=TransactionState.ONGOING,
    partitions=frozenset([TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 7)]),
    start_ms=1_700_000_000_000,
    last_update_ms=1_700_000_000_005,
    previous_producer_id=4000,
    client_version=2,
)


def test_a_state_survives() -> None:
    for state in TransactionState:
        partitions = frozenset() if state is TransactionState.EMPTY else ONGOING.partitions
        transaction = Transaction(
            transactional_id="pay",
            producer_id=4000,
            producer_epoch=3,
            timeout_ms=60_000,
            state=state,
            partitions=partitions,
            start_ms=1,
            last_update_ms=2,
            previous_producer_id=7,
            next_producer_id=8,
            client_version=2,
        )
        record = TransactionRecord("pay", transaction)

        assert decode_record(*encode_record(record)) == record


def test_the_bytes_are_kafkas() -> None:
    """As kafka-dump-log of Kafka 4.3 reads them; the last epoch is not among them."""
    key, value = encode_record(TransactionRecord("pay", ONGOING))

    assert key == b"\0\0\0\x03pay"
    assert value == (
        b"\0\x01"  # version
        b"\0\0\0\0\0\0\x0f\xa0"  # producer id
        b"\0\x03"  # epoch
        b"\0\0\xea\x60"  # timeout
        b"\x01"  # state
        b"\x03"  # two topics, plus one
        b"\x02a\x03\0\0\0\0\0\0\0\x01\0"
        b"\x02b\x02\0\0\0\x07\0"
        b"\0\0\x01\x8b\xcf\xe5\x68\x05"  # last update
        b"\0\0\x01\x8b\xcf\xe5\x68\0"  # start
        b"\x02"  # two tagged fields
        b"\0\x08\0\0\0\0\0\0\x0f\xa0"  # previous producer id
        b"\x02\x02\0\x02"  # client transaction version
    )


def test_an_expired_id_is_a_tombstone() -> None:
    record = TransactionRecord("pay", None)

    assert encode_record(record) == (b"\0\0\0\x03pay", None)
    assert decode_record(*encode_record(record)) == record


def test_version_0_is_read() -> None:
    """Kafka writes it while transaction.version is 0."""
    value = (
        b"\0\0"
        b"\0\0\0\0\0\0\0\x07"
        b"\0\x01"
        b"\0\0\x27\x10"
        b"\0"
        b"\xff\xff\xff\xff"
        b"\0\0\0\0\0\0\0\x05"
        b"\xff\xff\xff\xff\xff\xff\xff\xff"
    )

    record = decode_record(b"\0\0\0\x01x", value)

    assert record is not None
    assert record.transaction == Transaction(
        transactional_id="x", producer_id=7, producer_epoch=1, timeout_ms=10_000, last_update_ms=5
    )


def test_records_of_another_type_are_skipped_and_damaged_ones_refused() -> None:
    key, value = encode_record(TransactionRecord("pay", ONGOING))
    assert value is not None

    assert decode_record(b"\0\x09whatever", b"x") is None
    for bad_key, bad_value in (
        (None, value),
        (b"\0", value),
        (key, b"\0"),
        (key, b"\0\x02" + value[2:]),
        (key, value[:20]),
        (key, value.replace(b"\xea\x60\x01", b"\xea\x60\x09")),
    ):
        with pytest.raises(ProtocolError):
            decode_record(bad_key, bad_value)
