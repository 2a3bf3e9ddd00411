"""A topic as it is just now: its leaders, and every record that is committed."""

import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from headrace.client.errors import NoSuchTopic, Unreachable
from headrace.client.records.one_by_one import Record
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address, NoAnswer
from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import Buffer
from headrace.protocol.records import decode_batch
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic

_POLL_S: Final = 0.01
_EARLIEST: Final = -2
_FETCH_BYTES: Final = 64 * 1024 * 1024

T = TypeVar("T")


class NotNow(Exception):
    """The cluster cannot say at the moment: a leader is missing, or has just changed."""


def until(what: str, find: Callable[[], T], timeout_s: float) -> T:
    """What `find` returns once it neither says NotNow nor loses its broker; TimeoutError after a while."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return find()
        except (NotNow, NoAnswer, Unreachable) as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {timeout_s:g} s: {error}") from error
        time.sleep(_POLL_S)


def topic_at(
    brokers: Brokers, address: Address | None, name: str, *, create: bool = False
) -> MetadataResponseTopic:
    """A topic as a broker, or any, sees it; NotNow if a partition of it has no leader.

    NoSuchTopic if there is none, unless they `create` what they are asked for.
    """
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=create)
    response = brokers.any(request) if address is None else brokers.at(address, request)
    brokers.know(Address(each.host, each.port) for each in response.brokers)
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
    found = brokers.any(MetadataRequest(topics=[], allow_auto_topic_creation=False)).brokers
    addresses = {each.node_id: Address(each.host, each.port) for each in found}
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
    earliest = ListOffsetsPartition(partition_index=index, timestamp=_EARLIEST)
    asked = ListOffsetsTopic(name=topic.name or "", partitions=[earliest])
    response = brokers.at(leader, ListOffsetsRequest(replica_id=-1, topics=[asked]))
    found = response.topics[0].partitions[0]
    _not_now_if(found.error_code, topic, index)
    return int(found.offset)


def _fetched(
    brokers: Brokers, leader: Address, topic: MetadataResponseTopic, index: int, offset: int
) -> PartitionData:
    wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    asked = FetchTopic(topic=topic.name or "", topic_id=topic.topic_id, partitions=[wanted])
    response = brokers.at(
        leader, FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=_FETCH_BYTES, topics=[asked])
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
