"""Requests to the leader of the schemas topic: Fetch, ListOffsets and Produce."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.client.errors import Retriable, error_name, raise_for
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address
from headrace.client.wire.requests import (
    EARLIEST,
    LATEST,
    fetch_request,
    list_offsets_request,
    listed_offsets,
    produce_request,
    whole_batches,
)
from headrace.http.problems import Problem
from headrace.protocol.batch import read_batch, read_header
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, decode_batch

logger = logging.getLogger(__name__)

FETCH_BYTES: Final = 8 * 1024 * 1024
APPEND_MS: Final = 10_000

_UNCERTAIN: Final = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
"""The batch is in the leader's log, but perhaps not committed."""

_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


class LogReplaced(Exception):
    """The log ends before the position of this reader (OFFSET_OUT_OF_RANGE): it is not the same log."""


@dataclass(frozen=True, slots=True)
class Leader:
    """The address of the partition's leader, and the id of the topic."""

    topic_id: bytes
    address: Address


class Fetched(NamedTuple):
    """The records of a Fetch response, the offset after them, and the high watermark."""

    records: Sequence[Record]
    next_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The base offset of an append, or why there is none."""

    base_offset: int = -1
    conflict: bool = False  # the leader has refused the expected offset
    uncertain: bool = False  # the batch may have been appended
    why: str = ""


def fetch(brokers: Brokers, leader: Leader, topic: str, offset: int, wait_ms: int) -> Fetched:
    """Return the records from `offset` on, after waiting up to `wait_ms` for some."""
    request = fetch_request(
        TopicPartition(topic, 0), offset, topic_id=leader.topic_id, max_bytes=FETCH_BYTES, max_wait_ms=wait_ms
    )
    response = brokers.at(leader.address, request)
    _check(response.error_code, topic)
    if not response.responses:
        raise Retriable(f"{topic}: the broker throttles")  # Apache Kafka, beyond a quota
    answer = response.responses[0].partitions[0]
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise LogReplaced
    _check(answer.error_code, topic)
    records, next_offset = _records(memoryview(answer.records or b""), offset)
    return Fetched(records, next_offset, answer.high_watermark)


def log_start_offset(brokers: Brokers, leader: Leader, topic: str) -> int:
    return _offset(brokers, leader, topic, EARLIEST)


def check_high_watermark(brokers: Brokers, leader: Leader, topic: str) -> None:
    """Raise Retriable if the leader is so new that it does not know the high watermark yet.

    Until then its Fetch responses may end before records that were already acknowledged (KIP-207).
    """
    _offset(brokers, leader, topic, LATEST)


def _offset(brokers: Brokers, leader: Leader, topic: str, timestamp: int) -> int:
    partition = TopicPartition(topic, 0)
    response = brokers.at(leader.address, list_offsets_request({partition: timestamp}))
    answer = listed_offsets(response)[partition]
    _check(answer.error_code, topic)
    return int(answer.offset)


def append(brokers: Brokers, leader: Leader, topic: str, batch: bytes) -> AppendResult:
    """Append a batch with acks=all; raise Retriable if it certainly was not appended."""
    batches, topic_ids = {TopicPartition(topic, 0): batch}, {topic: leader.topic_id}
    response = brokers.at(leader.address, produce_request(batches, topic_ids, timeout_ms=APPEND_MS))
    answer = response.responses[0].partition_responses[0]
    why = answer.error_message or error_name(answer.error_code)
    if answer.error_code == ErrorCode.NONE:
        return AppendResult(answer.base_offset)
    # Our batches are valid: without an error for one of its records, a batch is refused for its offset.
    if answer.error_code == ErrorCode.INVALID_RECORD and not answer.record_errors:
        return AppendResult(conflict=True, why=why)
    if answer.error_code in _UNCERTAIN:
        return AppendResult(uncertain=True, why=why)
    if answer.error_code in _TOO_LARGE:
        raise Problem(42209, f"the schema is too large for the topic: {why}")
    _check(answer.error_code, topic, why)
    raise AssertionError(answer)


def _check(code: int, topic: str, why: str | None = None) -> None:
    """Raise Retriable, or a Problem if a retry cannot resolve the error."""
    if code != ErrorCode.NONE and not ErrorCode(code).retriable:
        raise Problem(50001, f"{topic}: {why or error_name(code)}")
    raise_for(code, why, topic)


def _records(data: memoryview, offset: int) -> tuple[list[Record], int]:
    """Return the records of complete batches, and the offset after them."""
    found: list[Record] = []
    for batch in whole_batches(data):
        header = read_header(batch)
        try:
            if not read_batch(batch).is_control:
                found += decode_batch(batch, header)
        except KafkaError as error:  # the batches after it are still readable
            logger.warning("the batch at offset %d is skipped: %s", header.base_offset, error)
        offset = max(offset, header.next_offset)
    return found, offset
