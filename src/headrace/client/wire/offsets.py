"""The offsets of partitions, at either end of the log or at a time: ListOffsets to the leaders."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from headrace.client.errors import error_name, raise_for
from headrace.client.wire.brokers import QUICK_S, SILENT_S, Brokers
from headrace.client.wire.connection import Connection
from headrace.client.wire.requests import (
    NO_LEADER,
    Node,
    leaders_of,
    list_offsets_request,
    listed_offsets,
    nodes_of,
)
from headrace.client.wire.retry import Answers, Backoff, Known, Unanswered, ask_owners
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.list_offsets import ListOffsetsPartitionResponse
from headrace.protocol.schema.metadata import MetadataResponse

PARTITIONS_PER_S: Final = 5000  # that a broker looks up, with time to spare
_NOT_THERE: Final = Known[Any](None)
_NEW_TOPIC: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}


def read_offsets(
    brokers: Brokers,
    partitions: Iterable[TopicPartition],
    timestamp: int,
    backoff: Backoff,
    known: Mapping[TopicPartition, Node] | None = None,
    *,
    read_committed: bool = False,
) -> Answers[TopicPartition, int | None]:
    """Return the offset of a timestamp, EARLIEST or LATEST in each partition; None where there is none.

    LATEST is the high watermark, or with `read_committed` the last stable offset. A partition that does not
    exist has None, too. Missing are partitions without a leader, and those whose
    leader does not answer. Leaders that are `known` are not looked for.
    """
    wanted = list(partitions)

    def within_s() -> float:
        return max(SILENT_S, min(QUICK_S + len(wanted) / PARTITIONS_PER_S, backoff.left_s))

    def locate(some: list[TopicPartition]) -> dict[TopicPartition, Node | Unanswered | Known[int | None]]:
        return leaders(brokers.any_metadata(by_topic(some), within_s()), some)

    return ask_owners(
        wanted,
        locate=locate,
        ask=lambda asked: brokers.scatter(
            asked, partial(_offsets, timestamp, read_committed=read_committed), within_s()
        ),
        backoff=backoff,
        known=known,
    )


def leaders(
    found: MetadataResponse, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Node | Unanswered | Known[Any]]:
    """Return the leader of each partition, if it has one; Known(None) if the partition does not exist."""
    for topic in found.topics:
        if topic.error_code not in _NEW_TOPIC:
            raise_for(topic.error_code, None, topic.name)
    nodes, led = {node.id: node for node in nodes_of(found)}, leaders_of(found)
    return {partition: _leader(led.get(partition), nodes) for partition in partitions}


def _leader(leader: int | None, nodes: Mapping[int, Node]) -> Node | Unanswered | Known[Any]:
    if leader is None:
        return _NOT_THERE
    if leader == NO_LEADER:
        return Unanswered("the partition has no leader (LEADER_NOT_AVAILABLE)", retriable=False)
    return nodes.get(leader, Unanswered(f"its leader, broker {leader}, is not registered"))


def _offsets(
    timestamp: int, node: Node, partitions: list[TopicPartition], at: Connection, *, read_committed: bool
) -> dict[TopicPartition, int | Unanswered | None]:
    request = list_offsets_request(dict.fromkeys(partitions, timestamp), read_committed=read_committed)
    found = listed_offsets(at.ask(request))
    return {partition: _offset(node, partition, each) for partition, each in found.items()}


def _offset(
    node: Node, partition: TopicPartition, found: ListOffsetsPartitionResponse
) -> int | Unanswered | None:
    if found.error_code == ErrorCode.NONE:
        return found.offset if found.offset >= 0 else None
    if not ErrorCode(found.error_code).retriable:
        raise_for(found.error_code, None, partition.topic)
    return Unanswered(f"broker {node.id}: {error_name(found.error_code)}")
