"""What is cut off: the old records of a topic."""

from collections.abc import Mapping
from typing import Any, Final

from headrace.client.cluster.reading import read_partitions
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.wire.brokers import Brokers, raise_for
from headrace.client.wire.connection import Address, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)

_TIMEOUT_MS: Final = 30_000


def delete_records(brokers: Brokers, topic: str, before: Mapping[int, int]) -> dict[int, int]:
    """Have each partition begin at this offset (-1: its end), and return where each begins.

    None is changed if one of them is not there, or has no leader.
    """
    found = brokers.metadata()
    there = {each.partition: each for each in read_partitions(found) if each.topic == topic}
    if not there:
        raise NoSuchTopic(topic)
    addresses = {each.node_id: Address(each.host, each.port) for each in found.brokers}
    by_leader: dict[Address, dict[int, int]] = {}
    for index, offset in before.items():
        if index not in there:
            raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")
        leader = there[index].leader
        if leader is None or leader not in addresses:
            raise Unreachable(f"{TopicPartition(topic, index)} has no leader")
        by_leader.setdefault(addresses[leader], {})[index] = offset
    begins: dict[int, int] = {}
    for address, offsets in by_leader.items():
        begins |= _delete_at(brokers, address, topic, offsets)
    return begins


def _delete_at(brokers: Brokers, address: Address, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
    partitions = [
        DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets.items()
    ]
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=_TIMEOUT_MS
    )
    answer: DeleteRecordsResponse = _at(brokers, address, request)
    begins = {}
    for each in answer.topics[0].partitions:
        place = TopicPartition(topic, each.partition_index)
        if each.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise ClientError(f"{place}: offset {offsets[each.partition_index]} is past its end")
        raise_for(each.error_code, None, str(place))
        begins[each.partition_index] = each.low_watermark
    return begins


def _at(brokers: Brokers, address: Address, request: Message) -> Any:
    try:
        return brokers.at(address, request)
    except NoAnswer as error:
        raise Unreachable(str(error)) from error
