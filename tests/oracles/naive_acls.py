"""Kafka's authorization rules as its documentation states them: a loop over all ACLs, and no index."""

from collections.abc import Collection, Iterable

from headrace.security.acls import AclBinding, AclEntry, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Action, Operation, ResourceType
from headrace.security.principals import Principal

DESCRIBING = {Operation.DESCRIBE, Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
DESCRIBING_CONFIGS = {Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}


class NaiveAuthorizer:
    def __init__(
        self, acls: Collection[AclBinding], super_users: Collection[Principal], *, allow_everyone: bool
    ) -> None:
        self.acls = acls
        self.super_users = super_users
        self.allow_everyone = allow_everyone

    def allows(self, principal: Principal, host: str, action: Action) -> bool:
        if principal in self.super_users:
            return True
        about = [acl for acl in self.acls if applies(acl.pattern, action.resource_type, action.resource_name)]
        if not about:
            return self.allow_everyone
        concerned = [acl.entry for acl in about if concerns(acl.entry, principal, host)]
        if any(denies(entry, action.operation) for entry in concerned):
            return False
        return any(allows(entry, action.operation) for entry in concerned)

    def allows_on_any(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        """KIP-679, with the resource name that Kafka's implementation asks about first."""
        if self.allows(principal, host, Action(operation, resource, "hardcode")):
            return True
        concerned = [
            acl
            for acl in self.acls
            if acl.pattern.resource_type is resource
            and concerns(acl.entry, principal, host)
            and acl.entry.operation in {operation, Operation.ALL}
        ]
        allowed = [acl.pattern for acl in concerned if acl.entry.permission_type is PermissionType.ALLOW]
        denied = [acl.pattern for acl in concerned if acl.entry.permission_type is PermissionType.DENY]
        if any(is_wildcard(pattern) for pattern in denied):
            return False
        return any(is_wildcard(pattern) or not covered(pattern, denied) for pattern in allowed)


def applies(pattern: ResourcePattern, resource_type: ResourceType, name: str) -> bool:
    if pattern.resource_type is not resource_type:
        return False
    if pattern.pattern_type is PatternType.PREFIXED:
        return name.startswith(pattern.name)
    return pattern.name in ("*", name)


def concerns(entry: AclEntry, principal: Principal, host: str) -> bool:
    return entry.principal in (str(principal), "User:*") and entry.host in (host, "*")


def denies(entry: AclEntry, operation: Operation) -> bool:
    return entry.permission_type is PermissionType.DENY and entry.operation in {operation, Operation.ALL}


def allows(entry: AclEntry, operation: Operation) -> bool:
    if entry.permission_type is not PermissionType.ALLOW:
        return False
    if entry.operation in {operation, Operation.ALL}:
        return True
    if operation is Operation.DESCRIBE:
        return entry.operation in DESCRIBING
    return operation is Operation.DESCRIBE_CONFIGS and entry.operation in DESCRIBING_CONFIGS


def is_wildcard(pattern: ResourcePattern) -> bool:
    return pattern.name == "*" and pattern.pattern_type is PatternType.LITERAL


def covered(pattern: ResourcePattern, denied: Iterable[ResourcePattern]) -> bool:
    """Whether one denied pattern is for every resource that `pattern` is for."""
    return any(
        other == pattern
        or (other.pattern_type is PatternType.PREFIXED and pattern.name.startswith(other.name))
        for other in denied
    )
