"""What a request requires of its principal: which operation on which resources. Handlers declare it."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from headrace.broker.image import ClusterImage
from headrace.controller.config_admin import ResourceType as ConfigResourceType
from headrace.security.authorization import CLUSTER_NAME, Action, Operation, ResourceType

Names = Callable[[Any, ClusterImage], Iterable[str]]
"""The names of the resources in a request, given the metadata that resolves topic ids."""


class Requirement(NamedTuple):
    """The principal of a request must be allowed `operation` on every resource that `names` returns."""

    operation: Operation
    resource_type: ResourceType
    names: Names

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"

    def actions(self, request: Any, image: ClusterImage) -> list[Action]:
        return [Action(self.operation, self.resource_type, name) for name in self.names(request, image)]


def on_cluster(operation: Operation, when: Callable[[Any], bool] = lambda _request: True) -> Requirement:
    """Require `operation` on the cluster, of those requests for which `when` is true."""

    def names(request: Any, _image: ClusterImage) -> Iterable[str]:
        return (CLUSTER_NAME,) if when(request) else ()

    return Requirement(operation, ResourceType.CLUSTER, names)


def on_group(operation: Operation) -> Requirement:
    """Require `operation` on the group that `group_id` names."""
    return on_groups(operation, lambda request: (request.group_id,))


def on_groups(operation: Operation, names: Callable[[Any], Iterable[str]]) -> Requirement:
    return Requirement(operation, ResourceType.GROUP, lambda request, _image: names(request))


def on_transactional_ids(operation: Operation, names: Callable[[Any], Iterable[str]]) -> Requirement:
    return Requirement(operation, ResourceType.TRANSACTIONAL_ID, lambda request, _image: names(request))


def on_topics(operation: Operation, topics: Callable[[Any], Iterable[Any] | None]) -> Requirement:
    """Require `operation` on topics that `topics` returns: names, or structures with a name or a topic id."""

    def names(request: Any, image: ClusterImage) -> Iterable[str]:
        found = (_topic_name(topic, image) for topic in topics(request) or ())
        return (name for name in found if name)

    return Requirement(operation, ResourceType.TOPIC, names)


def _topic_name(topic: Any, image: ClusterImage) -> str | None:
    if isinstance(topic, str):
        return topic
    name: str | None = getattr(topic, "name", None) or getattr(topic, "topic", None)
    return name or image.topic_names.get(getattr(topic, "topic_id", b""))


def config_requirements(operation: Operation) -> tuple[Requirement, ...]:
    """Require `operation` on the topics and groups that `resources` names, and else on the cluster."""
    kinds = {ConfigResourceType.TOPIC: ResourceType.TOPIC, ConfigResourceType.GROUP: ResourceType.GROUP}

    def named(kind: ConfigResourceType) -> Names:
        return lambda request, _image: [
            each.resource_name for each in request.resources if each.resource_type == kind
        ]

    others = on_cluster(
        operation, lambda request: any(each.resource_type not in kinds for each in request.resources)
    )
    return (*(Requirement(operation, resource, named(kind)) for kind, resource in kinds.items()), others)
