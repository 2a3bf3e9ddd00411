"""Requests by which brokers tell whether a user may do something, without doing anything.

A broker authorizes a request before it looks for the resource: a request for a partition that no topic has,
or one that is only validated, is answered with an authorization error or with another one. So the answer
comes from the brokers' own authorizer, super users and defaults included, and also for topics that do not
exist.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NEWEST
from headrace.client.wire.requests import BROKER, TOPIC
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from headrace.protocol.schema.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.security.authorization import Operation

DENIED: Final = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED})
_NO_PARTITION: Final = 2**31 - 1
_TIMEOUT_MS: Final = 1000
_AT_ONCE: Final = 1000  # topics of one Metadata request


class _Probe(NamedTuple):
    request: Callable[[str], Message]
    errors: Callable[[Any], list[int]]
    max_version: int = NEWEST


def _produce(topic: str) -> Message:
    nothing = PartitionProduceData(index=_NO_PARTITION, records=None)
    data = [TopicProduceData(name=topic, partition_data=[nothing])]
    return ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=data)


def _delete_records(topic: str) -> Message:
    nothing = DeleteRecordsPartition(partition_index=_NO_PARTITION, offset=0)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[nothing])], timeout_ms=_TIMEOUT_MS
    )


def _alter_configs(kind: int, name: str) -> Message:
    nothing = AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
    return IncrementalAlterConfigsRequest(resources=[nothing], validate_only=True)


def _describe_configs(kind: int, name: str) -> Message:
    nothing = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=())
    return DescribeConfigsRequest(resources=[nothing])


_OF_TOPIC: Final[Mapping[Operation, _Probe]] = {
    Operation.WRITE: _Probe(
        _produce,
        lambda answer: [each.error_code for topic in answer.responses for each in topic.partition_responses],
        max_version=12,  # the last with names of topics: ids exist only of topics that exist
    ),
    Operation.DELETE: _Probe(
        _delete_records,
        lambda answer: [each.error_code for topic in answer.topics for each in topic.partitions],
    ),
    Operation.ALTER_CONFIGS: _Probe(
        lambda topic: _alter_configs(TOPIC, topic),
        lambda answer: [each.error_code for each in answer.responses],
    ),
}
_OF_CLUSTER: Final[Mapping[Operation, _Probe]] = {
    Operation.ALTER_CONFIGS: _Probe(
        lambda name: _alter_configs(BROKER, name),
        lambda answer: [each.error_code for each in answer.responses],
    ),
    Operation.DESCRIBE_CONFIGS: _Probe(
        lambda name: _describe_configs(BROKER, name),
        lambda answer: [each.error_code for each in answer.results],
    ),
}
_ALL_BROKERS: Final = ""  # the default settings of brokers


def describable(brokers: Brokers, topics: Collection[str]) -> set[str]:
    """Return the topics, existing or not, on which the user has DESCRIBE: READ or WRITE imply it."""
    wanted = sorted(set(topics))
    found: set[str] = set()
    for start in range(0, len(wanted), _AT_ONCE):
        answer = brokers.any_metadata(wanted[start : start + _AT_ONCE])
        found |= {each.name for each in answer.topics if each.name and each.error_code not in DENIED}
    return found & set(wanted)


def may_on_topic(brokers: Brokers, operation: Operation, topic: str) -> bool:
    """Return whether the user may do this on a topic, which need not exist."""
    return _ask(brokers, _OF_TOPIC[operation], topic)


def may_on_cluster(brokers: Brokers, operation: Operation) -> bool:
    """Return whether the user may do this on the cluster."""
    return _ask(brokers, _OF_CLUSTER[operation], _ALL_BROKERS)


def _ask(brokers: Brokers, probe: _Probe, name: str) -> bool:
    request = probe.request(name)
    answer = brokers.first(lambda at: at.ask(request, max_version=probe.max_version))
    errors = probe.errors(answer)
    return bool(errors) and not DENIED.intersection(errors)
