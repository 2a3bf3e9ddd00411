"""Reading the state of a cluster: the requests, and what their responses say."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from headrace.client.cluster import status
from headrace.client.cluster.moves import Reassignment
from headrace.client.wire.brokers import CONTROLLER_S, Brokers, NoController
from headrace.client.wire.connection import Connection, NoAnswer, NotKnown
from headrace.client.wire.connection_settings import Target
from headrace.client.wire.requests import BROKER, NO_LEADER, TOPIC, Node, describe_configs_request
from headrace.protocol.ids import TopicPartition
from headrace.protocol.locations import Locations
from headrace.protocol.schema import describe_topic_partitions
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse
from headrace.protocol.schema.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from headrace.protocol.schema.metadata import MetadataResponse

PID: Final = "headrace.pid"
NODE: Final = "headrace.node"
MIN_IN_SYNC: Final = "min.insync.replicas"
SILENCE_S: Final = 5.0  # after which a registered broker counts as silent
_MAX_TOPICS: Final = 500  # in one request


def read_status(target: Target) -> status.ClusterStatus:
    """Return the status of a cluster; a silent broker delays it by SILENCE_S."""
    with Brokers(target, answer_s=SILENCE_S) as brokers:
        found = brokers.metadata()
        controller: int | None = found.controller_id
        try:
            reassignments = read_reassignments(brokers, timeout_s=0)
        except NoController:
            controller, reassignments = None, []
        partitions = read_partitions(found)
        partitions = with_min_isr(brokers, partitions, {partition.topic for partition in partitions})
        eligible = _eligible(brokers, {each.topic for each in partitions if each.leader is None})
        return status.cluster_status(
            cluster_id=found.cluster_id,
            controller=controller,
            nodes=_nodes(brokers, found),
            partitions=[
                replace(each, eligible=eligible.get(each.topic_partition, ())) for each in partitions
            ],
            reassignments=reassignments,
        )


def read_partitions(found: MetadataResponse) -> list[status.PartitionState]:
    partitions = [
        status.PartitionState(
            topic=topic.name,
            partition=partition.partition_index,
            leader=None if partition.leader_id == NO_LEADER else partition.leader_id,
            replicas=tuple(partition.replica_nodes),
            in_sync=tuple(partition.isr_nodes),
        )
        for topic in found.topics
        if topic.name is not None
        for partition in topic.partitions
    ]
    return sorted(partitions, key=lambda each: each.topic_partition)


def with_min_isr(
    brokers: Brokers, partitions: Sequence[status.PartitionState], topics: Iterable[str] | None = None
) -> list[status.PartitionState]:
    """Return the partitions with `min.insync.replicas` of these topics, or of all with an incomplete ISR."""
    if topics is None:
        topics = {partition.topic for partition in partitions if partition.lacks}
    read = {topic: int(value) for topic, _, value in read_configs(brokers, topics, [MIN_IN_SYNC])}
    return [
        replace(each, min_in_sync=min(read.get(each.topic, 1), len(each.replicas))) for each in partitions
    ]


def read_reassignments(brokers: Brokers, *, timeout_s: float = CONTROLLER_S) -> list[Reassignment]:
    found: ListPartitionReassignmentsResponse = brokers.controller(
        ListPartitionReassignmentsRequest(), timeout_s=timeout_s
    )
    reassignments = [
        Reassignment(
            topic=topic.name,
            partition=partition.partition_index,
            replicas=tuple(partition.replicas),
            adding=tuple(partition.adding_replicas),
            removing=tuple(partition.removing_replicas),
        )
        for topic in found.topics
        for partition in topic.partitions
    ]
    return sorted(reassignments, key=lambda each: each.topic_partition)


def read_configs(
    brokers: Brokers, topics: Iterable[str], keys: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield topic, name and value of these settings of these topics."""
    for some in _portions(sorted(topics)):
        request = describe_configs_request(TOPIC, some, keys)
        found: DescribeConfigsResponse = brokers.first(partial(Connection.ask, request=request))
        for result in found.results:
            for config in result.configs:
                if config.value is not None:
                    yield result.resource_name, config.name, config.value


def _eligible(brokers: Brokers, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the eligible leader replicas of these topics' partitions, if the brokers support KIP-966."""
    eligible = {}
    try:
        for found in _described(brokers, sorted(topics)):
            for topic in found.topics:
                for each in topic.partitions:
                    partition = TopicPartition(topic.name or "", each.partition_index)
                    eligible[partition] = tuple(each.eligible_leader_replicas or ())
    except NotKnown:
        return {}
    return eligible


def _described(
    brokers: Brokers, topics: Sequence[str]
) -> Iterator[describe_topic_partitions.DescribeTopicPartitionsResponse]:
    """Yield the responses about these topics, each of which may be a part."""
    for some in _portions(topics):
        cursor: describe_topic_partitions.Cursor | None = None
        while True:
            request = describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=[describe_topic_partitions.TopicRequest(name=topic) for topic in some], cursor=cursor
            )
            found: describe_topic_partitions.DescribeTopicPartitionsResponse = brokers.any(request)
            yield found
            cursor = found.next_cursor
            if cursor is None:
                break


def _nodes(brokers: Brokers, found: MetadataResponse) -> list[status.Broker]:
    """Return the registered brokers, with the process id and the node of those that answer."""
    registered = {Node(each.node_id, each.host, each.port): each for each in found.brokers}
    answers: dict[Node, DescribeConfigsResponse | NoAnswer] = brokers.each(
        {
            node: partial(
                Connection.ask, request=describe_configs_request(BROKER, [str(node.id)], [PID, NODE])
            )
            for node in registered
        },
        SILENCE_S,
    )
    brokers_found = []
    for node, broker in registered.items():
        answer = answers[node]
        results = () if isinstance(answer, NoAnswer) else answer.results
        told = {config.name: config.value for result in results for config in result.configs if config.value}
        brokers_found.append(
            status.Broker(
                id=node.id,
                host=node.host,
                port=node.port,
                rack=broker.rack,
                node=told.get(NODE),
                state=status.SILENT if isinstance(answer, NoAnswer) else status.UP,
                pid=int(told[PID]) if PID in told else None,
            )
        )
    return brokers_found


def read_locations(brokers: Brokers, found: MetadataResponse) -> Locations:
    """Return the racks and nodes of the registered brokers; every broker is asked for its node."""
    return status.locations_of(_nodes(brokers, found))


def _portions(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _MAX_TOPICS):
        yield names[first : first + _MAX_TOPICS]
