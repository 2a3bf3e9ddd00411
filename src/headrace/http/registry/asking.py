"""The three things that a partition's leader is asked: what comes next, where it begins, and to append."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, NamedTuple

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address
from headrace.http.problems import Problem
from headrace.protocol.batch import read_batch, read_header, read_offset_and_size
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.records import Record, decode_batch
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData

logger = logging.getLogger(__name__)

PIECE_BYTES: Final = 8 * 1024 * 1024
APPEND_MS: Final = 10_000
_EARLIEST: Final = -2
_LATEST: Final = -1
_SMALLEST_BATCH: Final = 61

_PASSING: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_LEADER_EPOCH,
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.NOT_ENOUGH_REPLICAS,
}
"""What a new leader, or a moment, puts right; nothing has been appended."""

_IN_DOUBT: Final = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
"""It is in the leader's log, and perhaps in no other."""

_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


class Passing(Exception):
    """Something that is worth another attempt."""


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
    """Records from `offset` on, at once or as soon as there are some."""
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PIECE_BYTES)
    response = brokers.at(
        led.leader,
        FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=PIECE_BYTES,
            topics=[FetchTopic(topic=topic, topic_id=led.topic_id, partitions=[wanted])],
        ),
    )
    _check(response.error_code, topic)
    if not response.responses:
        raise Passing("the broker asks for patience")  # as Kafka's do beyond a quota
    answer = response.responses[0].partitions[0]
    if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
        raise Rewritten
    _check(answer.error_code, topic)
    records, next_offset = _records(memoryview(answer.records or b""), offset)
    return Read(records, next_offset, answer.high_watermark)


def earliest(brokers: Brokers, led: Led, topic: str) -> int:
    """Where the log begins."""
    return _offset(brokers, led, topic, _EARLIEST)


def ensure_all_is_shown(brokers: Brokers, led: Led, topic: str) -> None:
    """Passing if a leader is so new that it does not know yet how far the log is committed.

    For that moment a Fetch of it shows less than others have been told is written (KIP-207).
    """
    _offset(brokers, led, topic, _LATEST)


def _offset(brokers: Brokers, led: Led, topic: str, which: int) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=which)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    answer = brokers.at(led.leader, request).topics[0].partitions[0]
    _check(answer.error_code, topic)
    return int(answer.offset)


def append(brokers: Brokers, led: Led, topic: str, batch: bytes) -> Appended:
    """Have a batch appended, by all replicas that are in sync; Passing if it certainly was not."""
    data = PartitionProduceData(index=0, records=batch)
    response = brokers.at(
        led.leader,
        ProduceRequest(
            acks=-1,
            timeout_ms=APPEND_MS,
            topic_data=[TopicProduceData(name=topic, topic_id=led.topic_id, partition_data=[data])],
        ),
    )
    answer = response.responses[0].partition_responses[0]
    why = answer.error_message or ErrorCode(answer.error_code).name.replace("_", " ").lower()
    if answer.error_code == ErrorCode.NONE:
        return Appended(answer.base_offset)
    if answer.error_code == ErrorCode.INVALID_RECORD and "offset" in why:
        return Appended(refused=True, why=why)
    if answer.error_code in _IN_DOUBT:
        return Appended(in_doubt=True, why=why)
    if answer.error_code in _TOO_LARGE:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, 42209, f"the schema is too large for the topic: {why}")
    _check(answer.error_code, topic, why)
    raise AssertionError(answer)


def _check(code: int, topic: str, why: str | None = None) -> None:
    if code == ErrorCode.NONE:
        return
    said = f"{topic}: {why or ErrorCode(code).name.replace('_', ' ').lower()}"
    if code in _PASSING:
        raise Passing(said)
    raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, 50001, said)


def _records(data: memoryview, offset: int) -> tuple[list[Record], int]:
    """The records of whole batches, and the offset after them."""
    found: list[Record] = []
    for batch in _batches(data):
        header = read_header(batch)
        try:
            if not read_batch(batch).is_control:
                found += decode_batch(batch, header)
        except KafkaError as error:  # whoever wrote it: the others can be read
            logger.warning("the batch at offset %d is passed over: %s", header.base_offset, error)
        offset = max(offset, header.next_offset)
    return found, offset


def _batches(data: memoryview) -> Iterator[memoryview]:
    position = 0
    while position + _SMALLEST_BATCH <= len(data):
        _, size = read_offset_and_size(data, position)
        if size < _SMALLEST_BATCH or position + size > len(data):
            return  # the rest of it comes with the next piece
        yield data[position : position + size]
        position += size
