"""Authorization in Kafka's model: a principal performs an operation on a resource."""

from collections.abc import Hashable
from enum import IntEnum
from typing import Final, NamedTuple

from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.security.principals import Principal

CLUSTER_NAME: Final = "kafka-cluster"  # the name of the only resource of type CLUSTER
NOT_REQUESTED: Final = -(2**31)  # authorized operations in a response to a request that did not ask


class Operation(IntEnum):
    """Kafka's operations, by their numbers in the protocol. Only ACLs have ALL; no request asks for it."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ResourceType(IntEnum):
    """Kafka's types of resources, by their numbers in the protocol."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


OPERATIONS: Final = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE, Operation.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}
"""The operations that exist for each type of resource."""

OPERATION_BITS: Final = {
    resource: sum(1 << operation for operation in operations) for resource, operations in OPERATIONS.items()
}
"""The same operations as bit sets, which is what responses carry."""


class Permission(NamedTuple):
    operation: Operation
    resource_type: ResourceType

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name}"


class Action(NamedTuple):
    operation: Operation
    resource_type: ResourceType
    resource_name: str

    def __str__(self) -> str:
        return f"{self.operation.name} on {self.resource_type.name} {self.resource_name!r}"


class AuthorizationFailed(KafkaError):
    """The principal lacks a permission.

    The message does not name the resource: a request may name a topic by its id, and the principal must not
    learn the name of the topic.
    """

    def __init__(self, permission: Permission) -> None:
        super().__init__(f"the principal lacks the permission {permission} ({self.code.name})")
        self.permission = permission


class TopicAuthorizationFailed(AuthorizationFailed):
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class GroupAuthorizationFailed(AuthorizationFailed):
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class ClusterAuthorizationFailed(AuthorizationFailed):
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class TransactionalIdAuthorizationFailed(AuthorizationFailed):
    code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class DelegationTokenAuthorizationFailed(AuthorizationFailed):
    code = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


_FAILURES: Final = {
    ResourceType.TOPIC: TopicAuthorizationFailed,
    ResourceType.GROUP: GroupAuthorizationFailed,
    ResourceType.CLUSTER: ClusterAuthorizationFailed,
    ResourceType.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailed,
    ResourceType.DELEGATION_TOKEN: DelegationTokenAuthorizationFailed,
    ResourceType.USER: DelegationTokenAuthorizationFailed,  # only delegation tokens have permissions on users
}


def authorization_failed(permission: Permission) -> AuthorizationFailed:
    """Return the error for a principal that lacks `permission`, by the type of the resource."""
    return _FAILURES[permission.resource_type](permission)


class Authorizer:
    """Decides what principals may do. This one, of a cluster without ACLs, allows everything."""

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        """Return whether the principal may perform `operation` on a resource from `host`."""
        del principal, host, operation, resource, name
        return True

    def view(self, principal: Principal, host: str) -> Hashable:
        """Return a key for caches: principals with equal keys may see the same resources."""
        del principal, host
        return None

    def authorized_operations(
        self, principal: Principal, host: str, resource: ResourceType, name: str
    ) -> int:
        """Return a bit set of the operations that the principal may perform on a resource."""
        del principal, host, name
        return OPERATION_BITS[resource]

    def may_on_any_resource(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        """Return whether the principal may perform `operation` on at least one resource of the type.

        Kafka calls it authorizeByResourceType (KIP-679): who may write to any topic may have a producer id.
        """
        del principal, host, operation, resource
        return True


ALLOW_ALL: Final = Authorizer()
