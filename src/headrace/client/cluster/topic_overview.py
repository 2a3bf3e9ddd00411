"""Every topic in one line: partitions, records, bytes, and whether all is well with it.

Thousands of partitions take as many requests as there are brokers, and a few more.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.client.cluster.log_dirs import read_log_dirs, sizes
from headrace.client.cluster.reading import TOPIC, by_topic, read_partitions
from headrace.client.cluster.status import PartitionState
from headrace.client.connection import Place
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address, NoAnswer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.protocol.schema.metadata import MetadataResponse

EARLIEST, LATEST = -2, -1  # instead of a time
SHOWN: Final = ("cleanup.policy", "retention.ms", "retention.bytes")
_ASKED_AT_ONCE: Final = 500  # topics
_NOBODY: Final = -1  # of the brokers asks: a client does


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionOverview:
    """A partition in one line; offsets are None while nobody who would know answers."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None
    next_offset: int | None  # which the next record gets


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicOverview:
    """A topic in one line. Bytes and records are None while nobody who would know answers.

    Records are offsets that were given out and are still in the log: compaction leaves fewer than that.
    """

    name: str
    internal: bool
    partitions: int
    replicas: int
    records: int | None
    size_bytes: int | None  # of one copy: the leaders'
    disk_bytes: int | None  # of all replicas
    under_replicated: int  # partitions
    leaderless: int  # partitions, those without any replica alive among them
    cleanup_policy: str | None
    retention_ms: int | None
    retention_bytes: int | None
    by_partition: tuple[PartitionOverview, ...] | None = None  # if it was asked for


def read_overview(brokers: Brokers, *, by_partition: bool = False) -> list[TopicOverview]:
    """Every topic, by name."""
    found = brokers.metadata()
    partitions = read_partitions(found)
    of_topic: dict[str, list[PartitionState]] = defaultdict(list)
    for each in partitions:
        of_topic[each.topic].append(each)
    starts = read_offsets(brokers, found, partitions, EARLIEST)
    ends = read_offsets(brokers, found, partitions, LATEST)
    taken = sizes(read_log_dirs(brokers, found.brokers))
    settings = dict(_settings(brokers, sorted(of_topic)))
    internal = {topic.name for topic in found.topics if topic.is_internal}
    return [
        TopicOverview(
            name=name,
            internal=name in internal,
            partitions=len(parts),
            replicas=max(len(each.replicas) for each in parts),
            records=_sum(_length(starts.get(each.place), ends.get(each.place)) for each in parts),
            size_bytes=_sum(
                taken.get((each.leader, each.place)) for each in parts if each.leader is not None
            ),
            disk_bytes=_sum(taken.get((broker, each.place)) for each in parts for broker in each.replicas),
            under_replicated=sum(bool(each.lacks) for each in parts),
            leaderless=sum(each.leader is None for each in parts),
            cleanup_policy=settings.get((name, "cleanup.policy")),
            retention_ms=_whole(settings.get((name, "retention.ms"))),
            retention_bytes=_whole(settings.get((name, "retention.bytes"))),
            by_partition=tuple(_partitions(parts, starts, ends)) if by_partition else None,
        )
        for name, parts in sorted(of_topic.items())
    ]


def _partitions(
    parts: Iterable[PartitionState], starts: Mapping[Place, int], ends: Mapping[Place, int]
) -> Iterator[PartitionOverview]:
    for each in sorted(parts, key=lambda each: each.place):
        yield PartitionOverview(
            index=each.place.partition,
            leader=each.leader,
            replicas=tuple(each.replicas),
            in_sync=tuple(each.in_sync),
            start_offset=starts.get(each.place),
            next_offset=ends.get(each.place),
        )


def read_offsets(
    brokers: Brokers, found: MetadataResponse, partitions: Iterable[PartitionState], time_ms: int
) -> dict[Place, int]:
    """The offset for that time in each partition that has a leader who answers."""
    led: dict[int, list[Place]] = defaultdict(list)
    for each, leader in _led(partitions):
        led[leader].append(each.place)
    offsets: dict[Place, int] = {}
    for node in found.brokers:
        if node.node_id in led:
            offsets |= _offsets_at(brokers, Address(node.host, node.port), led[node.node_id], time_ms)
    return offsets


def _offsets_at(
    brokers: Brokers, address: Address, places: Sequence[Place], time_ms: int
) -> dict[Place, int]:
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[ListOffsetsPartition(partition_index=index, timestamp=time_ms) for index in indexes],
        )
        for topic, indexes in by_topic(places).items()
    ]
    try:
        answer: ListOffsetsResponse = brokers.at(
            address, ListOffsetsRequest(replica_id=_NOBODY, topics=topics)
        )
    except NoAnswer:
        return {}
    return {
        Place(topic.name, each.partition_index): each.offset
        for topic in answer.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE and each.offset >= 0
    }


def _settings(brokers: Brokers, topics: Sequence[str]) -> Iterator[tuple[tuple[str, str], str]]:
    for first in range(0, len(topics), _ASKED_AT_ONCE):
        resources = [
            DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=SHOWN)
            for topic in topics[first : first + _ASKED_AT_ONCE]
        ]
        answer: DescribeConfigsResponse = brokers.any(DescribeConfigsRequest(resources=resources))
        for result in answer.results:
            for each in result.configs:
                if each.value is not None:
                    yield (result.resource_name, each.name), each.value


def _led(partitions: Iterable[PartitionState]) -> Iterator[tuple[PartitionState, int]]:
    """Those that have a leader, each with it."""
    for each in partitions:
        if each.leader is not None:
            yield each, each.leader


def _length(start: int | None, end: int | None) -> int | None:
    return None if start is None or end is None else end - start


def _sum(numbers: Iterable[int | None]) -> int | None:
    """The sum of those that are known; None if none of them is."""
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)
