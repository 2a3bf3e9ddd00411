"""What is cut off: the old records of a topic, and what a group has committed for some partitions."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from headrace.client.brokers import Brokers, raise_for
from headrace.client.cluster_reading import by_topic, read_partitions
from headrace.client.connection import Place
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.wire import Address, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

_GROUP: Final = 0  # a kind of coordinator
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
            raise Unreachable(f"{Place(topic, index)} has no leader")
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
        place = Place(topic, each.partition_index)
        if each.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            raise ClientError(f"{place}: offset {offsets[each.partition_index]} is past its end")
        raise_for(each.error_code, None, str(place))
        begins[each.partition_index] = each.low_watermark
    return begins


def delete_offsets(brokers: Brokers, group: str, places: Iterable[Place]) -> None:
    """Forget what a group has committed for these; refused while its members read the topic."""
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic,
                partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
            )
            for topic, indexes in by_topic(places).items()
        ],
    )
    answer: OffsetDeleteResponse = _at(brokers, _coordinator(brokers, group), request)
    raise_for(answer.error_code, None, f"group {group}")
    for topic in answer.topics:
        for each in topic.partitions:
            raise_for(each.error_code, None, str(Place(topic.name, each.partition_index)))


def _coordinator(brokers: Brokers, group: str) -> Address:
    request = FindCoordinatorRequest(key=group, key_type=_GROUP, coordinator_keys=[group])
    answer: FindCoordinatorResponse = brokers.any(request)
    if answer.coordinators:  # v4 and newer answer for many at once
        found = answer.coordinators[0]
        raise_for(found.error_code, found.error_message, f"group {group}")
        return Address(found.host, found.port)
    raise_for(answer.error_code, answer.error_message, f"group {group}")
    return Address(answer.host, answer.port)


def _at(brokers: Brokers, address: Address, request: Message) -> Any:
    try:
        return brokers.at(address, request)
    except NoAnswer as error:
        raise Unreachable(str(error)) from error
