"""Requests as bytes, made once and sent many times, and the little that is read of each answer."""

import os
import time
from collections.abc import Iterable
from struct import Struct
from typing import Any, Final, NamedTuple

from headrace.client.errors import Retriable
from headrace.client.wire.connection import Address, Connection, NoAnswer
from headrace.client.wire.requests import LATEST, list_offsets_request, listed_offsets, metadata_request
from headrace.client.wire.retry import Backoff, retry
from headrace.protocol.api import ApiKey, encode_response
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import encode_request_header, encode_response_header
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema import fetch, produce
from headrace.protocol.schema.request_header import RequestHeader

KIB, MIB = 1024, 1024 * 1024
VERSIONS: Final = {  # topics by id, as Java 4.x sends them
    ApiKey.METADATA: 12,
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 17,
    ApiKey.LIST_OFFSETS: 7,
    ApiKey.API_VERSIONS: 0,
    ApiKey.SASL_HANDSHAKE: 1,
    ApiKey.DESCRIBE_QUORUM: 0,
    ApiKey.FIND_COORDINATOR: 6,
    ApiKey.JOIN_GROUP: 9,
    ApiKey.SYNC_GROUP: 5,
    ApiKey.HEARTBEAT: 4,
    ApiKey.DESCRIBE_GROUPS: 6,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 1,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 1,
    ApiKey.OFFSET_COMMIT: 10,
    ApiKey.OFFSET_FETCH: 10,
}
SIZE: Final = Struct(">i")
INT64: Final = Struct(">q")
TIMEOUT_S: Final = 30
_PLACE: Final = 0x0123456789ABCDEF  # stands where a number goes, so that its position can be found
_PLACE_16: Final = 0x0123


def request(key: ApiKey, body: Message) -> bytes:
    version = VERSIONS[key]
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=1, client_id="compare"
    )
    return b"".join(encode_frame(encode_request_header(header), body.encode(version)))


def ask(address: Address, body: Message, *, timeout_s: float = TIMEOUT_S) -> Any:
    """Send one request on a connection of its own, and return the response."""
    connection = Connection(address, answer_s=timeout_s, client_id="compare")
    try:
        return connection.ask(body)
    finally:
        connection.close()


def answers_metadata(address: Address) -> bool:
    """Whether the broker is up: it answers Metadata and knows of itself."""
    try:
        return bool(ask(address, metadata_request(), timeout_s=2).brokers)
    except NoAnswer:
        return False


def topic_id(address: Address, name: str, *, timeout_s: float = TIMEOUT_S) -> bytes:
    """Return the id of a topic, created if it is new, once the leaders of all its partitions answer."""

    def look() -> bytes:
        (topic,) = ask(address, metadata_request([name], create=True)).topics
        if not topic.partitions or not leaders_answer(address, name, range(len(topic.partitions))):
            raise Retriable(f"{name} has no leader")
        return bytes(topic.topic_id)

    return retry(look, Backoff(timeout_s))


def leaders_answer(address: Address, name: str, partitions: Iterable[int]) -> bool:
    """Whether the broker leads these partitions, and knows it: Kafka tells others shortly before."""
    wanted = dict.fromkeys((TopicPartition(name, index) for index in partitions), LATEST)
    found = listed_offsets(ask(address, list_offsets_request(wanted)))
    return not any(each.error_code for each in found.values())


class Batch(NamedTuple):
    data: bytes
    records: int


def make_batch(size: int, *, record_size: int = KIB) -> Batch:
    """A batch of `record_size` records that fills `size` bytes, or of one record if that is larger."""
    value = os.urandom(record_size)
    now_ms = time.time_ns() // 1_000_000
    count = max(1, size // (record_size + 16))
    batch = encode_batch([Record(None, value, timestamp=now_ms)] * count)
    return Batch(bytes(batch), count)


def produce_request(topic: bytes, batch: Batch, *, acks: int = 1, partition: int = 0) -> bytes:
    data = produce.PartitionProduceData(index=partition, records=batch.data)
    topics = [produce.TopicProduceData(topic_id=topic, partition_data=[data])]
    return request(ApiKey.PRODUCE, produce.ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=topics))


class FetchTemplate:
    """A Fetch of one partition, without a session, whose offset can be set in place."""

    def __init__(self, topic: bytes, max_bytes: int, *, max_wait_ms: int = 500) -> None:
        part = fetch.FetchPartition(partition=0, fetch_offset=_PLACE, partition_max_bytes=max_bytes)
        body = fetch.FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[fetch.FetchTopic(topic_id=topic, partitions=[part])],
        )
        self._bytes = bytearray(request(ApiKey.FETCH, body))
        self._offset_at = self._bytes.index(INT64.pack(_PLACE))

    def at(self, offset: int) -> bytes:
        INT64.pack_into(self._bytes, self._offset_at, offset)
        return bytes(self._bytes)


def _produce_error_at() -> int:
    part = produce.PartitionProduceResponse(index=0, error_code=_PLACE_16, base_offset=0)
    topic = produce.TopicProduceResponse(topic_id=bytes(16), partition_responses=[part])
    return _position(ApiKey.PRODUCE, produce.ProduceResponse(responses=[topic]))


def _fetch_error_at() -> int:
    part = fetch.PartitionData(
        partition_index=0, error_code=_PLACE_16, high_watermark=0, aborted_transactions=None, records=b""
    )
    topic = fetch.FetchableTopicResponse(topic_id=bytes(16), partitions=[part])
    return _position(ApiKey.FETCH, fetch.FetchResponse(responses=[topic]))


def _position(key: ApiKey, response: Message) -> int:
    """Where the partition's error code stands in a response's frame, after the size."""
    head = encode_response_header(key, VERSIONS[key], 0)
    frame = head + b"".join(encode_response(key, VERSIONS[key], response))
    return frame.index(_PLACE_16.to_bytes(2, "big"))


ERROR_AT: Final = {ApiKey.PRODUCE: _produce_error_at(), ApiKey.FETCH: _fetch_error_at()}
