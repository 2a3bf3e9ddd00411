"""The three things that a partition's leader is asked: what comes next, where it begins, and to append."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
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

PIECE_BYTES: Final = 8 * 1024 * 1024
APPEND_MS: Final = 10_000

_IN_DOUBT: Final = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
"""It is in the leader's log, and perhaps in no other."""

_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


class Rewritten(Exception):
    """The log does not reach to where we have read: it is another one by now."""


@dataclass(frozen=True, slots=True)
class Led:
    """Where the topic's one partition is led, and which topic of this name it is."""

    topic_id: bytes
    leader: Address


class Read(NamedTuple):
    """What a Fetch has given: records, where the next begin, and how far there are any."""

    records: Sequence[Record]
    next_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True)
class Appended:
    """What has become of an append: where it is, or why that is not known."""

    base_offset: int = -1
    refused: bool = False  # for its offset
    in_doubt: bool = False
    why: str = ""


def fetch(brokers: Brokers, led: Led, topic: str, offset: int, wait_ms: int) -> Read:
    """Return records from `offset` on, at once or as soon as there are some."""
    request = fetch_request(
        TopicPartition(topic, 0), offset, topic_id=led.topic_id, max_bytes=PIECE_BYTES, max_wait_ms=wait_ms
    )
    response = brokers.at(led.leader, request)
    _check(response.error_code, topic)
    if not response.responses:
        raise Retriable("the broker delays its answer")  # as Kafka's do beyond a quota
    answer = response.responses[0].partitions[0]
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise Rewritten
    _check(answer.error_code, topic)
    records, next_offset = _records(memoryview(answer.records or b""), offset)
    return Read(records, next_offset, answer.high_watermark)


def earliest(brokers: Brokers, led: Led, topic: str) -> int:
    """Where the log begins."""
    return _offset(brokers, led, topic, EARLIEST)


def ensure_all_is_shown(brokers: Brokers, led: Led, topic: str) -> None:
    """Raise Retriable if a leader is so new that it does not know yet how far the log is committed.

    For that moment a Fetch of it shows less than others have been told is written (KIP-207).
    """
    _offset(brokers, led, topic, LATEST)


def _offset(brokers: Brokers, led: Led, topic: str, which: int) -> int:
    partition = TopicPartition(topic, 0)
    answer = listed_offsets(brokers.at(led.leader, list_offsets_request({partition: which})))[partition]
    _check(answer.error_code, topic)
    return int(answer.offset)


def append(brokers: Brokers, led: Led, topic: str, batch: bytes) -> Appended:
    """Have a batch appended by all in-sync replicas; Retriable if it certainly was not appended."""
    request = produce_request({TopicPartition(topic, 0): batch}, {topic: led.topic_id}, timeout_ms=APPEND_MS)
    response = brokers.at(led.leader, request)
    answer = response.responses[0].partition_responses[0]
    why = answer.error_message or error_name(answer.error_code)
    if answer.error_code == ErrorCode.NONE:
        return Appended(answer.base_offset)
    if answer.error_code == ErrorCode.INVALID_RECORD:  # the batch has not the offset that it expects
        return Appended(refused=True, why=why)
    if answer.error_code in _IN_DOUBT:
        return Appended(in_doubt=True, why=why)
    if answer.error_code in _TOO_LARGE:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 42209, f"the schema is too large for the topic: {why}")
    _check(answer.error_code, topic, why)
    raise AssertionError(answer)


def _check(code: int, topic: str, why: str | None = None) -> None:
    if code != ErrorCode.NONE and not ErrorCode(code).retriable:
        raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, 50001, f"{topic}: {why or error_name(code)}")
    raise_for(code, why, topic)


def _records(data: memoryview, offset: int) -> tuple[list[Record], int]:
    """The records of whole batches, and the offset after them."""
    found: list[Record] = []
    for batch in whole_batches(data):
        header = read_header(batch)
        try:
            if not read_batch(batch).is_control:
                found += decode_batch(batch, header)
        except KafkaError as error:  # whoever wrote it: the others can be read
            logger.warning("the batch at offset %d is passed over: %s", header.base_offset, error)
        offset = max(offset, header.next_offset)
    return found, offset
