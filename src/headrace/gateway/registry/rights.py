"""What a user may do in the registry, by the ACLs of the topics that its subjects belong to.

The subjects `T-key` and `T-value` belong to topic T. Any other subject is a TOPIC resource of its own full
name: an ACL for the topic `com.example.Order`, or for the prefix `:.billing:`, need not have a topic.

| request | requires |
| --- | --- |
| read a subject: its versions, settings and mode; look up or compare a schema | TOPIC DESCRIBE |
| read a schema by its id or guid | TOPIC DESCRIBE of one of its subjects |
| register a schema | TOPIC WRITE, and DESCRIBE of the subjects that it refers to |
| delete a subject or a version | TOPIC DELETE |
| change settings or mode of a subject | TOPIC ALTER_CONFIGS |
| read, change global settings or mode, or those of a context | CLUSTER DESCRIBE_CONFIGS, ALTER_CONFIGS |

DESCRIBE is implied by READ, WRITE, DELETE and ALTER. Lists have only what the user may read.

Brokers tell whether a user may do something by the answer to a request that does nothing. A broker authorizes
a request before it looks for the resource: a request for a partition that no topic has, or one that is only
validated, is answered with an authorization error or with another one. So the answer comes from the brokers'
own authorizer, super users and defaults included, and also for topics that do not exist.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from cachetools import TTLCache

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import NEWEST
from headrace.client.wire.requests import BROKER, TOPIC
from headrace.gateway.problems import Problem
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
from headrace.registry import names
from headrace.registry.formats import Reference
from headrace.registry.records import SchemaValue
from headrace.security.authorization import Operation, ResourceType

if TYPE_CHECKING:
    from headrace.gateway.registry.registry import SchemaRegistry

FRESH_S: Final = 1.0  # for which an answer of the brokers counts
_KEPT: Final = 10_000
_DENIED: Final = 40301
_DENIED_BY_BROKERS: Final = {ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
_NO_PARTITION: Final = 2**31 - 1
_TIMEOUT_MS: Final = 1000
_AT_ONCE: Final = 1000  # topics of one Metadata request
_ALL_BROKERS: Final = ""  # the name of the default settings of brokers
_SUFFIXES: Final = ("-key", "-value")

DESCRIBE, WRITE, DELETE = Operation.DESCRIBE, Operation.WRITE, Operation.DELETE
DESCRIBE_CONFIGS, ALTER_CONFIGS = Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS
FILTERED: Final = None  # the route itself leaves out what the user may not read

_Required = tuple[ResourceType, Operation] | None
_TOPIC, _CLUSTER = ResourceType.TOPIC, ResourceType.CLUSTER
_VERSION: Final = "/subjects/{subject}/versions/{version}"
REQUIRED: Final[Mapping[tuple[str, str], _Required]] = {
    ("GET", "/subjects"): FILTERED,
    ("GET", "/subjects/{subject}/versions"): (_TOPIC, DESCRIBE),
    ("POST", "/subjects/{subject}/versions"): (_TOPIC, WRITE),
    ("POST", "/subjects/{subject}"): (_TOPIC, DESCRIBE),
    ("GET", "/subjects/{subject}/metadata"): (_TOPIC, DESCRIBE),
    ("GET", _VERSION): (_TOPIC, DESCRIBE),
    ("GET", f"{_VERSION}/schema"): (_TOPIC, DESCRIBE),
    ("GET", f"{_VERSION}/referencedby"): (_TOPIC, DESCRIBE),
    ("DELETE", "/subjects/{subject}"): (_TOPIC, DELETE),
    ("DELETE", _VERSION): (_TOPIC, DELETE),
    ("GET", "/schemas"): FILTERED,
    ("GET", "/schemas/types"): FILTERED,
    ("GET", "/schemas/ids/{schema_id}"): FILTERED,
    ("GET", "/schemas/ids/{schema_id}/schema"): FILTERED,
    ("GET", "/schemas/ids/{schema_id}/subjects"): FILTERED,
    ("GET", "/schemas/ids/{schema_id}/versions"): FILTERED,
    ("GET", "/schemas/guids/{guid}"): FILTERED,
    ("GET", "/schemas/guids/{guid}/ids"): FILTERED,
    ("POST", "/compatibility/subjects/{subject}/versions/{version}"): (_TOPIC, DESCRIBE),
    ("POST", "/compatibility/subjects/{subject}/versions"): (_TOPIC, DESCRIBE),
    ("GET", "/config"): (_CLUSTER, DESCRIBE_CONFIGS),
    ("PUT", "/config"): (_CLUSTER, ALTER_CONFIGS),
    ("DELETE", "/config"): (_CLUSTER, ALTER_CONFIGS),
    ("GET", "/config/{subject}"): (_TOPIC, DESCRIBE),
    ("PUT", "/config/{subject}"): (_TOPIC, ALTER_CONFIGS),
    ("DELETE", "/config/{subject}"): (_TOPIC, ALTER_CONFIGS),
    ("GET", "/mode"): (_CLUSTER, DESCRIBE_CONFIGS),
    ("PUT", "/mode"): (_CLUSTER, ALTER_CONFIGS),
    ("DELETE", "/mode"): (_CLUSTER, ALTER_CONFIGS),
    ("GET", "/mode/{subject}"): (_TOPIC, DESCRIBE),
    ("PUT", "/mode/{subject}"): (_TOPIC, ALTER_CONFIGS),
    ("DELETE", "/mode/{subject}"): (_TOPIC, ALTER_CONFIGS),
    ("GET", "/contexts"): FILTERED,
    ("DELETE", "/contexts/{context}"): (_CLUSTER, ALTER_CONFIGS),
    ("GET", "/v1/metadata/id"): FILTERED,
    ("GET", "/v1/metadata/version"): FILTERED,
}
"""What each route of the registry requires; a route that is not here cannot be added."""


class _Probe(NamedTuple):
    """A request that changes nothing, by the name of its resource, and the error codes in its response."""

    request: Callable[[str], Message]
    errors: Callable[[Any], list[int]]
    max_version: int = NEWEST


def _produce(topic: str) -> Message:
    nothing = PartitionProduceData(index=_NO_PARTITION, records=None)
    data = [TopicProduceData(name=topic, partition_data=[nothing])]
    return ProduceRequest(acks=-1, timeout_ms=_TIMEOUT_MS, topic_data=data)


def _delete_records(topic: str) -> Message:
    nothing = DeleteRecordsPartition(partition_index=_NO_PARTITION, offset=0)
    topics = [DeleteRecordsTopic(name=topic, partitions=[nothing])]
    return DeleteRecordsRequest(topics=topics, timeout_ms=_TIMEOUT_MS)


def _alter_configs(kind: int, name: str) -> Message:
    nothing = AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
    return IncrementalAlterConfigsRequest(resources=[nothing], validate_only=True)


def _describe_configs(name: str) -> Message:
    nothing = DescribeConfigsResource(resource_type=BROKER, resource_name=name, configuration_keys=())
    return DescribeConfigsRequest(resources=[nothing])


_PROBES: Final[Mapping[tuple[ResourceType, Operation], _Probe]] = {
    (_TOPIC, WRITE): _Probe(
        _produce,
        lambda answer: [part.error_code for topic in answer.responses for part in topic.partition_responses],
        max_version=12,  # the last with names of topics: ids exist only of topics that exist
    ),
    (_TOPIC, DELETE): _Probe(
        _delete_records,
        lambda answer: [part.error_code for topic in answer.topics for part in topic.partitions],
    ),
    (_TOPIC, ALTER_CONFIGS): _Probe(
        lambda topic: _alter_configs(TOPIC, topic),
        lambda answer: [resource.error_code for resource in answer.responses],
    ),
    (_CLUSTER, ALTER_CONFIGS): _Probe(
        lambda name: _alter_configs(BROKER, name),
        lambda answer: [resource.error_code for resource in answer.responses],
    ),
    (_CLUSTER, DESCRIBE_CONFIGS): _Probe(
        _describe_configs, lambda answer: [result.error_code for result in answer.results]
    ),
}


def topic_of(subject: str) -> str:
    name = names.parse(subject)
    if name.context == names.DEFAULT_CONTEXT:
        for suffix in _SUFFIXES:
            if name.subject.endswith(suffix) and name.subject != suffix:
                return name.subject.removesuffix(suffix)
    return str(name)


class SubjectRights:
    """Asks brokers with the user's connection; calls wait for brokers, so they are for threads.

    Without brokers everything is allowed: the gateway has no authentication.
    """

    def __init__(self, registry: "SchemaRegistry", brokers: Brokers | None = None) -> None:
        self._registry = registry
        self._brokers = brokers
        self._lock = Lock()
        self._describable: TTLCache[str, bool] = TTLCache(_KEPT, FRESH_S)

    @property
    def restricts(self) -> bool:
        """Whether anything has to be checked at all."""
        return self._brokers is not None

    def check_route(self, method: str, path: str, parameters: Mapping[str, Any]) -> None:
        """Raise a Problem (403) unless the user may send this request."""
        required = REQUIRED[method, path]
        if required is None:
            return
        resource, operation = required
        if resource is _CLUSTER:
            self.check_cluster(operation)
        else:
            self.check(operation, str(parameters["subject"]))

    def check(self, operation: Operation, subject: str) -> None:
        """Raise a Problem (403) unless the user may do this with the subject, and with what it aliases."""
        if self._brokers is None:
            return
        if not names.parse(subject).subject:  # a context
            self.check_cluster(DESCRIBE_CONFIGS if operation is DESCRIBE else ALTER_CONFIGS)
            return
        name = names.normal(subject)
        resolved = self._registry.read(lambda state: state.settings.resolve_alias(name))
        for topic in dict.fromkeys(map(topic_of, (name, resolved))):
            if not (
                self._described({topic}) if operation is DESCRIBE else self._may(_TOPIC, operation, topic)
            ):
                why = f"the user may not {operation.name} subject {subject}: it needs {operation.name} on"
                raise Problem(_DENIED, f"{why} topic {topic} (TOPIC_AUTHORIZATION_FAILED)")

    def check_cluster(self, operation: Operation) -> None:
        if self._brokers is not None and not self._may(_CLUSTER, operation, _ALL_BROKERS):
            why = f"the user needs {operation.name} on the cluster (CLUSTER_AUTHORIZATION_FAILED)"
            raise Problem(_DENIED, why)

    def check_references(self, references: Iterable[Reference], subject: str) -> None:
        """Raise a Problem (403) unless the user may read the subjects that a schema refers to."""
        for reference in references:
            self.check(DESCRIBE, names.qualified(subject, reference.subject))

    def visible(self, subjects: Iterable[str]) -> list[str]:
        listed = list(subjects)
        if self._brokers is None:
            return listed
        found = self._described({topic_of(subject) for subject in listed})
        return [subject for subject in listed if topic_of(subject) in found]

    def check_schema(self, value: SchemaValue) -> None:
        """Raise a Problem (403) unless the user may read one of the subjects that have the schema."""
        if self._brokers is None:
            return
        context = names.context_of(value.subject)
        versions = self._registry.recall(lambda state, _: state.versions_with_id(value.id, context))
        if not self._described({topic_of(version.subject) for version in [value, *versions]}):
            why = f"the user may not read any subject that has schema {value.id}"
            raise Problem(_DENIED, f"{why} (TOPIC_AUTHORIZATION_FAILED)")

    def _may(self, resource: ResourceType, operation: Operation, name: str) -> bool:
        """Return whether the user may do this on the cluster, or on a topic, which need not exist."""
        assert self._brokers is not None
        probe = _PROBES[resource, operation]
        request = probe.request(name)
        answer = self._brokers.first(lambda at: at.ask(request, max_version=probe.max_version))
        errors = probe.errors(answer)
        return bool(errors) and not _DENIED_BY_BROKERS.intersection(errors)

    def _described(self, topics: set[str]) -> set[str]:
        """Return those topics, existing or not, on which the user has DESCRIBE: READ or WRITE imply it."""
        assert self._brokers is not None
        with self._lock:
            known = {topic: self._describable.get(topic) for topic in topics}
        unknown = sorted(topic for topic, answer in known.items() if answer is None)
        for start in range(0, len(unknown), _AT_ONCE):
            asked = unknown[start : start + _AT_ONCE]
            answer = self._brokers.any_metadata(asked)
            allowed = {topic.name for topic in answer.topics if topic.error_code not in _DENIED_BY_BROKERS}
            known |= {topic: topic in allowed for topic in asked}
        with self._lock:
            self._describable.update({topic: bool(known[topic]) for topic in unknown})
        return {topic for topic, is_allowed in known.items() if is_allowed}
