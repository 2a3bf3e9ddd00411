"""Requests as bytes, made once and sent many times, and the little that is read of each answer."""

import os
import socket
import time
from struct import Struct
from typing import Final, NamedTuple

from headrace.protocol.api import ApiKey, encode_response, response_class
from headrace.protocol.frame import encode_frame
from headrace.protocol.headers import decode_response_header, encode_request_header, encode_response_header
from headrace.protocol.message import Message
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema import fetch, list_offsets, metadata, produce
from headrace.protocol.schema.request_header import RequestHeader

KIB, MIB = 1024, 1024 * 1024
VERSIONS: Final = {  # topics by id, as Java 4.x sends them
    ApiKey.METADATA: 12,
    ApiKey.PRODUCE: 13,
    ApiKey.FETCH: 17,
    ApiKey.LIST_OFFSETS: 7,
    ApiKey.API_VERSIONS: 0,
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


class Address(NamedTuple):
    host: str
    port: int


def request(key: ApiKey, body: Message) -> bytes:
    version = VERSIONS[key]
    header = RequestHeader(
        request_api_key=key, request_api_version=version, correlation_id=1, client_id="compare"
    )
    return b"".join(encode_frame(encode_request_header(header), body.encode(version)))


def ask(address: Address, key: ApiKey, body: Message, *, timeout_s: float = TIMEOUT_S) -> Message:
    """One request on a connection of its own, and its decoded answer."""
    with socket.create_connection(address, timeout_s) as connection:
        connection.sendall(request(key, body))
        with connection.makefile("rb") as answers:
            (size,) = SIZE.unpack(answers.read(4).ljust(4, b"\0"))
            frame = answers.read(size)
    if not frame:
        raise ConnectionError("closed without an answer")
    _, rest = decode_response_header(key, VERSIONS[key], memoryview(frame))
    return response_class(key).decode(rest, VERSIONS[key])


def answers_metadata(address: Address) -> bool:
    """Whether the broker is up: it answers Metadata and knows of itself."""
    everything = metadata.MetadataRequest(topics=(), allow_auto_topic_creation=False)
    try:
        answer = ask(address, ApiKey.METADATA, everything, timeout_s=2)
    except OSError:
        return False
    assert isinstance(answer, metadata.MetadataResponse)
    return bool(answer.brokers)


def topic_id(address: Address, name: str) -> bytes:
    """The id of a topic, once the leaders of all its partitions answer for them."""
    wanted = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        answer = ask(address, ApiKey.METADATA, wanted)
        assert isinstance(answer, metadata.MetadataResponse)
        (topic,) = answer.topics
        if topic.partitions and _leaders_answer(address, name, len(topic.partitions)):
            return topic.topic_id
        time.sleep(0.05)
    raise TimeoutError(f"{name} has no leader after {TIMEOUT_S} s")


def _leaders_answer(address: Address, name: str, partitions: int) -> bool:
    """Kafka tells of a new leader in Metadata shortly before the leader itself knows."""
    parts = [
        list_offsets.ListOffsetsPartition(partition_index=number, timestamp=-1)
        for number in range(partitions)
    ]
    topics = [list_offsets.ListOffsetsTopic(name=name, partitions=parts)]
    body = list_offsets.ListOffsetsRequest(replica_id=-1, topics=topics)
    answer = ask(address, ApiKey.LIST_OFFSETS, body)
    assert isinstance(answer, list_offsets.ListOffsetsResponse)
    return not any(part.error_code for part in answer.topics[0].partitions)


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
