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
"""

from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from cachetools import TTLCache

from headrace.client.wire.brokers import Brokers
from headrace.gateway.problems import Problem
from headrace.gateway.registry.probes import describable, may_on_cluster, may_on_topic
from headrace.registry import names
from headrace.registry.formats import Reference
from headrace.registry.records import SchemaValue
from headrace.registry.state import State
from headrace.security.authorization import Operation, ResourceType

if TYPE_CHECKING:
    from headrace.gateway.registry.registry import Registry

FRESH_S: Final = 1.0  # for which an answer of the brokers counts
_KEPT: Final = 10_000
_DENIED: Final = 40301
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


def topic_of(subject: str) -> str:
    """Return the topic resource that a subject belongs to."""
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

    def __init__(self, registry: "Registry", brokers: Brokers | None = None) -> None:
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
        resolved = self._registry.read(lambda state: _resolved(state, subject))
        for topic in dict.fromkeys(map(topic_of, (names.normal(subject), resolved))):
            if not self._may(operation, topic):
                why = f"the user may not {operation.name} subject {subject}: it needs {operation.name} on"
                raise Problem(_DENIED, f"{why} topic {topic} (TOPIC_AUTHORIZATION_FAILED)")

    def check_cluster(self, operation: Operation) -> None:
        """Raise a Problem (403) unless the user may do this on the cluster."""
        if self._brokers is not None and not may_on_cluster(self._brokers, operation):
            why = f"the user needs {operation.name} on the cluster (CLUSTER_AUTHORIZATION_FAILED)"
            raise Problem(_DENIED, why)

    def check_references(self, references: Iterable[Reference], subject: str) -> None:
        """Raise a Problem (403) unless the user may read the subjects that a schema refers to."""
        for each in references:
            self.check(DESCRIBE, names.qualified(subject, each.subject))

    def visible(self, subjects: Iterable[str]) -> list[str]:
        """Return the subjects that the user may read, in the same order."""
        listed = list(subjects)
        if self._brokers is None:
            return listed
        found = self._described({topic_of(each) for each in listed})
        return [each for each in listed if topic_of(each) in found]

    def check_schema(self, value: SchemaValue) -> None:
        """Raise a Problem (403) unless the user may read one of the subjects that have the schema."""
        if not self.may_read_schema(value):
            why = f"the user may not read any subject that has schema {value.id}"
            raise Problem(_DENIED, f"{why} (TOPIC_AUTHORIZATION_FAILED)")

    def may_read_schema(self, value: SchemaValue) -> bool:
        if self._brokers is None:
            return True
        context = names.context_of(value.subject)
        versions = self._registry.recall(lambda state, _: state.versions_with_id(value.id, context))
        return bool(self._described({topic_of(each.subject) for each in [value, *versions]}))

    def _may(self, operation: Operation, topic: str) -> bool:
        assert self._brokers is not None
        if operation is DESCRIBE:
            return bool(self._described({topic}))
        return may_on_topic(self._brokers, operation, topic)

    def _described(self, topics: set[str]) -> set[str]:
        """Return those topics on which the user has DESCRIBE."""
        assert self._brokers is not None
        with self._lock:
            known = {each: self._describable.get(each) for each in topics}
        unknown = {each for each, answer in known.items() if answer is None}
        if unknown:
            found = describable(self._brokers, unknown)
            known |= {each: each in found for each in unknown}
            with self._lock:
                self._describable.update({each: each in found for each in unknown})
        return {each for each, answer in known.items() if answer}


def _resolved(state: State, subject: str) -> str:
    return state.settings.resolve_alias(names.normal(subject))
