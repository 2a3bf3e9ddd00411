"""A topic as it is just now: its leaders, and every record that is committed."""

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from headrace.client.errors import NoSuchTopic, Retriable, Unreachable
from headrace.client.records.one_by_one import Record
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address
from headrace.client.wire.requests import (
    EARLIEST,
    addresses_by_id,
    fetch_request,
    list_offsets_request,
    listed_offsets,
    metadata_request,
)
from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import decode_batch
from headrace.protocol.schema.fetch import PartitionData
from headrace.protocol.schema.metadata import MetadataResponseTopic

_POLL_S: Final = 0.01
_FETCH_BYTES: Final = 64 * 1024 * 1024

T = TypeVar("T")


class NotNow(Retriable):
    """The cluster is not yet in the expected state: a leader is missing, or has just changed."""


def until(what: str, find: Callable[[], T], timeout_s: float) -> T:
    """What `find` returns once it neither says NotNow nor loses its broker; TimeoutError after a while."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return find()
        except Unreachable as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout_s:g} s: {error}") from error
        time.sleep(_POLL_S)


def topic_at(
    brokers: Brokers, address: Address | None, name: str, *, create: bool = False
) -> MetadataResponseTopic:
    """A topic as a broker, or any, sees it; NotNow if a partition of it has no leader.

    NoSuchTopic if there is none, unless they `create` what they are asked for.
    """
    request = metadata_request([name], create=create)
    response = brokers.any(request) if address is None else brokers.at(address, request)
    topic: MetadataResponseTopic = response.topics[0]
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NoSuchTopic(name)
    alive = {each.node_id for each in response.brokers}
    without = [each.partition_index for each in topic.partitions if each.leader_id not in alive]
    if topic.error_code or without or not topic.partitions:
        raise NotNow(f"{name} has no leader for its partitions {without}")
    return topic


def read_all(brokers: Brokers, name: str) -> Iterator[Record]:
    """Every record of a topic, by partition and offset."""
    topic = topic_at(brokers, None, name)
    addresses = addresses_by_id(brokers.any(metadata_request()))
    for partition in sorted(topic.partitions, key=lambda each: each.partition_index):
        leader = addresses.get(partition.leader_id)
        if leader is None:
            raise NotNow(f"broker {partition.leader_id} is gone")
        yield from _read_partition(brokers, leader, topic, partition.partition_index)


def _read_partition(
    brokers: Brokers, leader: Address, topic: MetadataResponseTopic, index: int
) -> Iterator[Record]:
    offset = _first_offset(brokers, leader, topic, index)
    while True:
        data = _fetched(brokers, leader, topic, index, offset)
        if not data.records:
            return
        for record in _decoded(data.records, topic.name or "", index):
            if record.offset >= offset:  # a batch comes whole, also if it begins earlier
                yield record
        last = _headers(data.records)[-1]
        offset = last.base_offset + last.last_offset_delta + 1


def _first_offset(brokers: Brokers, leader: Address, topic: MetadataResponseTopic, index: int) -> int:
    partition = TopicPartition(topic.name or "", index)
    found = listed_offsets(brokers.at(leader, list_offsets_request({partition: EARLIEST})))[partition]
    _not_now_if(found.error_code, topic, index)
    return int(found.offset)


def _fetched(
    brokers: Brokers, leader: Address, topic: MetadataResponseTopic, index: int, offset: int
) -> PartitionData:
    partition = TopicPartition(topic.name or "", index)
    response = brokers.at(
        leader, fetch_request(partition, offset, topic_id=topic.topic_id, max_bytes=_FETCH_BYTES)
    )
    found: PartitionData = response.responses[0].partitions[0]
    _not_now_if(found.error_code, topic, index)
    return found


def _not_now_if(code: int, topic: MetadataResponseTopic, index: int) -> None:
    if code:
        raise NotNow(f"{topic.name}-{index}: {ErrorCode(code).name}")


def _decoded(data: Buffer, topic: str, index: int) -> Iterator[Record]:
    position = 0
    for header in _headers(data):
        if not header.is_control:
            for each in decode_batch(memoryview(data)[position : position + header.size], header):
                yield Record(
                    value=each.value,
                    key=each.key,
                    headers=each.headers,
                    partition=index,
                    timestamp_ms=each.timestamp,
                    topic=topic,
                    offset=each.offset,
                )
        position += header.size


def _headers(data: Buffer) -> list[BatchHeader]:
    """The headers of the batches in `data`, which are whole: nobody fetches here with a small limit."""
    headers, position = list[BatchHeader](), 0
    while position < len(data):
        headers.append(read_batch(data, position))
        position += headers[-1].size
    return headers
