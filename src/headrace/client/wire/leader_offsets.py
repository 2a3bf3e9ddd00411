"""Where partitions begin and end, or stood at some time: asked of their leaders, whoever they are now."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from headrace.client.wire.brokers import raise_for
from headrace.client.wire.connection import Connection
from headrace.client.wire.live_brokers import ANSWER_S, SILENT_S, LiveBrokers, Node
from headrace.client.wire.settling import Again, Given, Patience, Settled, settle
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from headrace.protocol.schema.metadata import MetadataResponse

EARLIEST, LATEST = -2, -1  # instead of a time
PARTITIONS_IN_A_SECOND: Final = 5000  # that a broker tells of, with time to spare
_NOBODY: Final = -1  # leads; and no broker is who asks
_GONE: Final = Given[int | None](None)


def read_offsets(
    brokers: LiveBrokers,
    places: Iterable[TopicPartition],
    time_ms: int,
    patience: Patience,
    known: Mapping[TopicPartition, Node] | None = None,
) -> Settled[TopicPartition, int | None]:
    """The offset for that time in each partition; None where it has none, or is not there.

    Missing are those without a leader, and those whose leader does not answer. Leaders that are `known` are
    not looked for.
    """
    wanted = list(places)

    def within_s() -> float:
        return max(SILENT_S, min(ANSWER_S + len(wanted) / PARTITIONS_IN_A_SECOND, patience.left_s))

    def locate(some: list[TopicPartition]) -> dict[TopicPartition, Node | Again | Given[int | None]]:
        return leaders(brokers.metadata(by_topic(some), within_s()), some)

    return settle(
        wanted,
        locate=locate,
        ask=lambda asked: brokers.scatter(asked, partial(_offsets, time_ms), within_s()),
        patience=patience,
        known=known,
    )


def leaders(
    found: MetadataResponse, places: Iterable[TopicPartition]
) -> dict[TopicPartition, Node | Again | Given[int | None]]:
    """Who leads each partition, if somebody does."""
    nodes = {each.node_id: Node(each.node_id, each.host, each.port) for each in found.brokers}
    led: dict[TopicPartition, int] = {}
    for topic in found.topics:
        if topic.error_code not in {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}:
            raise_for(topic.error_code, None, topic.name)
        led |= {
            TopicPartition(topic.name or "", each.partition_index): each.leader_id
            for each in topic.partitions
        }
    return {place: _leader(led.get(place), nodes) for place in places}


def _leader(leader: int | None, nodes: dict[int, Node]) -> Node | Again | Given[int | None]:
    if leader is None:
        return _GONE
    if leader == _NOBODY:
        return Again("it has no leader", soon=False)
    return nodes.get(leader, Again(f"broker {leader}, which leads it, is away"))


def _offsets(
    time_ms: int, node: Node, places: list[TopicPartition], at: Connection
) -> dict[TopicPartition, int | Again | None]:
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[ListOffsetsPartition(partition_index=index, timestamp=time_ms) for index in indexes],
        )
        for topic, indexes in by_topic(places).items()
    ]
    answer: ListOffsetsResponse = at.ask(ListOffsetsRequest(replica_id=_NOBODY, topics=topics))
    return {
        TopicPartition(topic.name, each.partition_index): _offset(
            node, topic.name, each.error_code, each.offset
        )
        for topic in answer.topics
        for each in topic.partitions
    }


def _offset(node: Node, topic: str, code: int, offset: int) -> int | Again | None:
    if code == ErrorCode.NONE:
        return offset if offset >= 0 else None
    if not ErrorCode(code).retriable:
        raise_for(code, None, topic)
    return Again(f"broker {node.id}: {ErrorCode(code).name.replace('_', ' ').lower()}")
