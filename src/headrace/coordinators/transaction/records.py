"""The records of `__transaction_state` in Kafka's format.

The key is a version of two bytes, which is the type of the record, and the transactional id; the value begins
with a version as well. A record without a value is a tombstone: the transactional id has expired.
"""

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.message import Message, Struct, field


class TransactionLogKey(Message, versions="0", flexible="none"):
    transactional_id: str = field("string", "0")


class PartitionsSchema(Struct):
    topic: str = field("string", "0+")
    partition_ids: Sequence[int] = field("[]int32", "0+")


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    producer_id: int = field("int64", "0+")
    previous_producer_id: int = field("int64", "1+", tag=0, default=-1)
    next_producer_id: int = field("int64", "1+", tag=1, default=-1)
    producer_epoch: int = field("int16", "0+")
    next_producer_epoch: int = field("int16", "1+", tag=3, default=-1)
    transaction_timeout_ms: int = field("int32", "0+")
    transaction_status: int = field("int8", "0+")
    transaction_partitions: Sequence[PartitionsSchema] | None = field(
        "[]PartitionsSchema", "0+", nullable="0+"
    )
    transaction_last_update_timestamp_ms: int = field("int64", "0+")
    transaction_start_timestamp_ms: int = field("int64", "0+")
    client_transaction_version: int = field("int16", "1+", tag=2, default=0)


class TransactionRecord(NamedTuple):
    """A transactional id and its new state; None: the id has expired."""

    transactional_id: str
    transaction: Transaction | None


_TRANSACTION_LOG: Final = 0  # the version of the key, which is the type of the record
_WRITTEN_VERSION: Final = 1  # of the value
_VERSION: Final = struct.Struct(">h")


def encode_record(record: TransactionRecord) -> tuple[bytes, bytes | None]:
    name = record.transactional_id.encode()
    key = _VERSION.pack(_TRANSACTION_LOG) + _VERSION.pack(len(name)) + name
    if record.transaction is None:
        return key, None
    transaction, partitions = record.transaction, None
    if transaction.state is not TransactionState.EMPTY:
        topics = by_topic(sorted(transaction.partitions))
        partitions = [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=transaction.last_update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
    )
    return key, _VERSION.pack(_WRITTEN_VERSION) + b"".join(value.encode(_WRITTEN_VERSION))


def decode_record(key: Buffer | None, value: Buffer | None) -> TransactionRecord | None:
    """Return the decoded record; None if its type is unknown (a later Kafka has written it).

    Raise ProtocolError if the type is known and the record is malformed.
    """
    if key is None:
        raise ProtocolError("a record of __transaction_state has no key")
    if _version(key) != _TRANSACTION_LOG:
        return None
    name = TransactionLogKey.decode(memoryview(key)[2:], 0).transactional_id
    if value is None:
        return TransactionRecord(name, None)
    version = _version(value)
    if version > TransactionLogValue.__codec__.versions[-1]:
        raise ProtocolError(f"the state of transaction {name!r} has the unknown version {version}")
    log = TransactionLogValue.decode(memoryview(value)[2:], version)
    try:
        state = TransactionState(log.transaction_status)
    except ValueError:
        raise ProtocolError(f"transaction {name!r} has the unknown state {log.transaction_status}") from None
    transaction = Transaction(
        transactional_id=name,
        producer_id=log.producer_id,
        producer_epoch=log.producer_epoch,
        timeout_ms=log.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            TopicPartition(topic.topic, partition)
            for topic in log.transaction_partitions or ()
            for partition in topic.partition_ids
        ),
        start_ms=log.transaction_start_timestamp_ms,
        last_update_ms=log.transaction_last_update_timestamp_ms,
        previous_producer_id=log.previous_producer_id,
        next_producer_id=log.next_producer_id,
        client_version=log.client_transaction_version,
    )
    return TransactionRecord(name, transaction)


def _version(data: Buffer) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError(f"{bytes(data)!r} is too short for the version of a transaction record")
    version: int = _VERSION.unpack_from(data)[0]
    return version
