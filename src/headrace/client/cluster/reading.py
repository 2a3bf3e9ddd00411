"""Reading a cluster's state: which requests that takes, and what their answers say."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Final

from headrace.client.cluster.moves import Reassignment
from headrace.client.cluster.status import ClusterStatus, Node, PartitionState, cluster_status
from headrace.client.wire.brokers import PATIENCE_S, Brokers, NoController
from headrace.client.wire.connection import Address, Connection, NoAnswer, NotKnown
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from headrace.protocol.schema.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from headrace.protocol.schema.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from headrace.protocol.schema.metadata import MetadataResponse, MetadataResponseBroker

TOPIC, BROKER = 2, 4  # kinds of resources
NOBODY: Final = -1
PID: Final = "headrace.pid"
MIN_IN_SYNC: Final = "min.insync.replicas"
SILENCE_S: Final = 5.0  # after which a broker that is registered counts as silent
_ASKED_AT_ONCE: Final = 500  # topics
_THREADS: Final = 16


def read_status(bootstrap: str) -> ClusterStatus:
    """Ask for everything that a status is made of; nobody is waited for very long."""
    with Brokers(bootstrap, answer_s=SILENCE_S) as brokers:
        found = brokers.metadata()
        controller: int | None = found.controller_id
        try:
            reassignments = read_reassignments(brokers, patience_s=0)
        except NoController:
            controller, reassignments = None, []
        partitions = read_partitions(found)
        min_in_sync = dict(_min_in_sync(brokers, {each.topic for each in partitions}))
        eligible = _eligible(brokers, {each.topic for each in partitions if each.leader is None})
        return cluster_status(
            cluster_id=found.cluster_id,
            controller=controller,
            nodes=_nodes(found.brokers),
            partitions=[
                replace(
                    each,
                    min_in_sync=min(min_in_sync.get(each.topic, 1), len(each.replicas)),
                    eligible=eligible.get(each.place, ()),
                )
                for each in partitions
            ],
            reassignments=reassignments,
        )


def read_partitions(found: MetadataResponse) -> list[PartitionState]:
    """Every partition, in order."""
    partitions = [
        PartitionState(
            topic=topic.name,
            partition=each.partition_index,
            leader=None if each.leader_id == NOBODY else each.leader_id,
            replicas=tuple(each.replica_nodes),
            in_sync=tuple(each.isr_nodes),
        )
        for topic in found.topics
        if topic.name is not None
        for each in topic.partitions
    ]
    return sorted(partitions, key=lambda each: each.place)


def read_reassignments(brokers: Brokers, *, patience_s: float = PATIENCE_S) -> list[Reassignment]:
    """Every partition that is on its way to other brokers, in order."""
    found: ListPartitionReassignmentsResponse = brokers.controller(
        ListPartitionReassignmentsRequest(), patience_s=patience_s
    )
    reassignments = [
        Reassignment(
            topic=topic.name,
            partition=each.partition_index,
            replicas=tuple(each.replicas),
            adding=tuple(each.adding_replicas),
            removing=tuple(each.removing_replicas),
        )
        for topic in found.topics
        for each in topic.partitions
    ]
    return sorted(reassignments, key=lambda each: each.place)


# -- one question at a time --------------------------------------------------------------------


def _min_in_sync(brokers: Brokers, topics: Iterable[str]) -> Iterator[tuple[str, int]]:
    """How many replicas each topic wants in sync."""
    for some in _portions(sorted(topics)):
        resources = [
            DescribeConfigsResource(
                resource_type=TOPIC, resource_name=topic, configuration_keys=[MIN_IN_SYNC]
            )
            for topic in some
        ]
        found: DescribeConfigsResponse = brokers.any(DescribeConfigsRequest(resources=resources))
        for result in found.results:
            for each in result.configs:
                yield result.resource_name, int(each.value or 1)


def _eligible(brokers: Brokers, topics: Iterable[str]) -> dict[TopicPartition, tuple[int, ...]]:
    """Who may lead the partitions of these topics though not in sync, if the brokers know of such a thing."""
    eligible = {}
    try:
        for found in _described(brokers, sorted(topics)):
            for topic in found.topics:
                for each in topic.partitions:
                    place = TopicPartition(topic.name or "", each.partition_index)
                    eligible[place] = tuple(each.eligible_leader_replicas or ())
    except NotKnown:
        return {}
    return eligible


def _described(brokers: Brokers, topics: Sequence[str]) -> Iterator[DescribeTopicPartitionsResponse]:
    """What the brokers say of these topics, in as many answers as it takes."""
    for some in _portions(topics):
        cursor: Cursor | None = None
        while True:
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=topic) for topic in some], cursor=cursor
            )
            found: DescribeTopicPartitionsResponse = brokers.any(request)
            yield found
            cursor = found.next_cursor
            if cursor is None:
                break


def _nodes(brokers: Sequence[MetadataResponseBroker]) -> list[Node]:
    """The brokers that are registered; all are asked at once, as one that is silent takes its time."""
    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(_node, brokers))


def _node(broker: MetadataResponseBroker) -> Node:
    resource = DescribeConfigsResource(
        resource_type=BROKER, resource_name=str(broker.node_id), configuration_keys=[PID]
    )
    answer: DescribeConfigsResponse | None = _ask_alone(broker, DescribeConfigsRequest(resources=[resource]))
    values = () if answer is None else [each.value for result in answer.results for each in result.configs]
    return Node(
        id=broker.node_id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        answers=answer is not None,
        pid=next((int(value) for value in values if value), None),
    )


def _ask_alone(broker: MetadataResponseBroker, request: Message) -> DescribeConfigsResponse | None:
    try:
        connection = Connection(Address(broker.host, broker.port), answer_s=SILENCE_S)
        try:
            answer: DescribeConfigsResponse = connection.ask(request)
        finally:
            connection.close()
    except NoAnswer:
        return None
    return answer


def _portions(names: Sequence[str]) -> Iterator[Sequence[str]]:
    for first in range(0, len(names), _ASKED_AT_ONCE):
        yield names[first : first + _ASKED_AT_ONCE]
