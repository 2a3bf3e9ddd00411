"""The authorizer of a cluster with ACLs: the rules of Kafka's StandardAuthorizer.

A super user may do everything. Otherwise a DENY that matches wins over every ALLOW, and without an ALLOW the
answer is no. If no ACL at all matches the resource, `allow.everyone.if.no.acl.found` decides.

ALLOW of READ, WRITE, DELETE or ALTER implies DESCRIBE, and ALLOW of ALTER_CONFIGS implies DESCRIBE_CONFIGS.
DENY implies nothing.

Two things differ from Kafka 4.3. ACLs for `*` apply to every resource; in Kafka, not to a group or a
transactional id whose name begins with an asterisk. And an ACL may write an IPv6 address in any way.
"""

from collections.abc import Collection, Hashable, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Final

from headrace.security.acl_index import EVERY_OPERATION, AclIndex, canonical_host, subjects_of
from headrace.security.acls import WILDCARD, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import OPERATION_BITS, Authorizer, Operation, ResourceType
from headrace.security.principals import Principal

MAX_CACHED_DECISIONS: Final = 65_536
MAX_CACHED_NAME: Final = 249  # the longest name of a topic: longer names of groups are not worth their memory
_SUPER_USER: Final = "super user"
# Kafka asks about the resource of this name first. The name has to be Kafka's for the same answers.
_PROBE: Final = "hardcode"


_IMPLY_DESCRIBE: Final = (
    1 << Operation.READ | 1 << Operation.WRITE | 1 << Operation.DELETE | 1 << Operation.ALTER
)


class AclAuthorizer(Authorizer):
    """Decides by the ACLs of an index. Decisions are cached until the index changes."""

    def __init__(
        self,
        acls: AclIndex,
        *,
        super_users: Collection[Principal] = (),
        allow_everyone_if_no_acl_found: bool = False,
        max_cached_decisions: int = MAX_CACHED_DECISIONS,
    ) -> None:
        self._acls = acls
        self._super_users = frozenset(super_users)
        self._without_acl = EVERY_OPERATION if allow_everyone_if_no_acl_found else 0
        # The version of the ACLs is part of the key, so that decisions by earlier ones are dropped with time.
        self._decided = lru_cache(max_cached_decisions)(self._decide)
        self._decided_on_any = lru_cache(max_cached_decisions)(self._decide_on_any)

    def allows(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType, name: str
    ) -> bool:
        if principal in self._super_users:
            return True
        return bool(self._allowed(principal, host, resource, name) >> operation & 1)

    def view(self, principal: Principal, host: str) -> Hashable:
        """Return a key that is the same for all principals, and all hosts, that no ACL names."""
        if principal in self._super_users:
            return _SUPER_USER
        name, address = str(principal), canonical_host(host)
        return (
            self._acls.version,
            name if self._acls.names_principal(name) else None,
            address if self._acls.names_host(address) else None,
        )

    def authorized_operations(
        self, principal: Principal, host: str, resource: ResourceType, name: str
    ) -> int:
        existing = OPERATION_BITS[resource]
        if principal in self._super_users:
            return existing
        return self._allowed(principal, host, resource, name) & existing

    def may_on_any_resource(
        self, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        if principal in self._super_users:
            return True
        return self._decided_on_any(self._acls.version, principal, host, operation, resource)

    def _allowed(self, principal: Principal, host: str, resource: ResourceType, name: str) -> int:
        """Return a bit set of the operations that a principal, which is no super user, may perform."""
        decide = self._decided if len(name) <= MAX_CACHED_NAME else self._decide
        return decide(self._acls.version, principal, host, resource, name)

    def _decide(
        self, _version: int, principal: Principal, host: str, resource: ResourceType, name: str
    ) -> int:
        permissions = self._acls.permissions(subjects_of(str(principal), host), resource, name)
        if permissions is None:
            return self._without_acl
        allowed, denied = permissions
        if allowed & _IMPLY_DESCRIBE:
            allowed |= 1 << Operation.DESCRIBE
        if allowed & 1 << Operation.ALTER_CONFIGS:
            allowed |= 1 << Operation.DESCRIBE_CONFIGS
        return allowed & ~denied

    def _decide_on_any(
        self, _version: int, principal: Principal, host: str, operation: Operation, resource: ResourceType
    ) -> bool:
        """Return whether a pattern allows the operation, and no pattern that covers it denies the operation.

        As in Kafka, an operation is not implied by others here, and several DENY patterns that cover an
        ALLOW pattern together are not recognized.
        """
        if self._allowed(principal, host, resource, _PROBE) >> operation & 1:
            return True
        subjects = subjects_of(str(principal), host)
        denied = self._acls.patterns(subjects, resource, PermissionType.DENY, operation)
        every_resource = ResourcePattern(resource, WILDCARD)
        if any(every_resource in patterns for patterns in denied):
            return False
        return any(
            pattern == every_resource or not self._is_covered(pattern, denied)
            for patterns in self._acls.patterns(subjects, resource, PermissionType.ALLOW, operation)
            for pattern in patterns
        )

    def _is_covered(self, pattern: ResourcePattern, denied: Sequence[AbstractSet[ResourcePattern]]) -> bool:
        """Return whether one of the `denied` patterns matches all that `pattern` matches."""
        if not denied:
            return False
        type_, name = pattern.resource_type, pattern.name
        prefixes = (
            ResourcePattern(type_, prefix, PatternType.PREFIXED)
            for prefix in self._acls.prefixes(type_, name)
        )
        return any(wider in patterns for wider in (pattern, *prefixes) for patterns in denied)


def parse_super_users(text: str) -> frozenset[Principal]:
    """Return the principals in `super.users`, which are separated by `;`. ValueError says what is wrong."""
    return frozenset(Principal.parse(user.strip()) for user in text.split(";") if user.strip())
