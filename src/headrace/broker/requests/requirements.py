"""What a request requires of its principal. Handlers declare it.

A `Requirement` is about the one resource that the whole request is about, such as its group: dispatch checks
it, and refuses the request. A `Permission` is checked by the handler itself, for each resource that it meets:
the other resources of the request are served.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from headrace.replication.controller.config_admin import ResourceType as ConfigResourceType
from headrace.security.authorization import CLUSTER_NAME, Operation, Permission, ResourceType

Name = Callable[[Any], str | None]
"""Returns the name of the resource that a request is about; None if the requirement does not apply."""


class Requirement(NamedTuple):
    """The principal must have `permission` on the resource that `name` returns."""

    permission: Permission
    name: Name

    def __str__(self) -> str:
        return str(self.permission)


Required = Requirement | Permission


def on_cluster(operation: Operation, when: Callable[[Any], bool] = lambda _request: True) -> Requirement:
    """Require `operation` on the cluster, of those requests for which `when` is true."""
    permission = Permission(operation, ResourceType.CLUSTER)
    return Requirement(permission, lambda request: CLUSTER_NAME if when(request) else None)


def on_group(operation: Operation) -> Requirement:
    """Require `operation` on the group that `group_id` names."""
    return Requirement(Permission(operation, ResourceType.GROUP), lambda request: request.group_id)


def on_transactional_id(operation: Operation) -> Requirement:
    """Require `operation` on the transactional id of the request, if the request has one."""
    permission = Permission(operation, ResourceType.TRANSACTIONAL_ID)
    return Requirement(permission, lambda request: request.transactional_id)


on_topics = partial(Permission, resource_type=ResourceType.TOPIC)
on_groups = partial(Permission, resource_type=ResourceType.GROUP)
on_transactional_ids = partial(Permission, resource_type=ResourceType.TRANSACTIONAL_ID)

_CONFIG_RESOURCES: Final[Mapping[int, ResourceType]] = {
    ConfigResourceType.TOPIC: ResourceType.TOPIC,
    ConfigResourceType.GROUP: ResourceType.GROUP,
}
"""The resources whose configs have permissions of their own; for all others the cluster's count."""


def on_configs(operation: Operation) -> tuple[Permission, ...]:
    """Require `operation` on topics and groups for their configs, and on the cluster for all others."""
    return tuple(
        Permission(operation, type_) for type_ in (*_CONFIG_RESOURCES.values(), ResourceType.CLUSTER)
    )


def config_action(operation: Operation, resource_type: int, name: str) -> tuple[Permission, str]:
    """Return the permission, and on what, that `operation` on the configs of a resource requires."""
    type_ = _CONFIG_RESOURCES.get(resource_type)
    if type_ is None:
        return Permission(operation, ResourceType.CLUSTER), CLUSTER_NAME
    return Permission(operation, type_), name
