"""ACLs in Kafka's model: who may, or may not, perform an operation on resources that a pattern matches.

CreateAcls carries bindings, DescribeAcls and DeleteAcls carry filters. The protocol has a number for each
field; `new_binding` and `new_filter` check the numbers of a request.
"""

from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.security.authorization import CLUSTER_NAME, Operation, ResourceType
from headrace.security.principals import Principal

WILDCARD: Final = "*"  # a literal pattern with this name matches every resource; an entry, every host
WILDCARD_PRINCIPAL: Final = "User:*"  # an entry with this principal matches every principal
PRODUCER_OPERATIONS: Final = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
"""The operations that a producer needs, by type of resource: as `kafka-acls.sh --producer`."""
CONSUMER_OPERATIONS: Final = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}
_ANY: Final = 1  # in a filter: every resource type, operation or permission type

Number = TypeVar("Number", bound=IntEnum)


class PatternType(IntEnum):
    """How a pattern matches names, by Kafka's numbers. ANY and MATCH exist in filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class PermissionType(IntEnum):
    DENY = 2
    ALLOW = 3


class ResourcePattern(NamedTuple):
    """The resources that an ACL is about: one, all (LITERAL `*`), or those whose names have a prefix."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL

    def __str__(self) -> str:
        return f"{self.pattern_type.name} {self.resource_type.name} {self.name!r}"

    def matches(self, name: str) -> bool:
        """Return whether the resource `name`, of the pattern's type, is one of those meant."""
        if self.pattern_type is PatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in {name, WILDCARD}


class AclEntry(NamedTuple):
    """A rule for a resource pattern. `host` is an IP address, or `*` for all."""

    principal: str
    host: str
    operation: Operation
    permission_type: PermissionType

    def __str__(self) -> str:
        return f"{self.permission_type.name} {self.principal} {self.operation.name} from {self.host}"


class AclBinding(NamedTuple):
    """An ACL: a rule, and the resources that it is for."""

    pattern: ResourcePattern
    entry: AclEntry

    def __str__(self) -> str:
        return f"{self.entry} on {self.pattern}"


class AclFilter(NamedTuple):
    """Selects ACLs: a field that is None selects all, and without arguments the filter selects every ACL.

    Pattern type MATCH selects the patterns that apply to the resource `name`: those with this literal name,
    those with a prefix of it, and `*`. ANY selects patterns that have exactly this name, whatever their type.
    """

    resource_type: ResourceType | None = None
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation | None = None
    permission_type: PermissionType | None = None

    def matches(self, binding: AclBinding) -> bool:
        return self.matches_pattern(binding.pattern) and self.matches_entry(binding.entry)

    def matches_pattern(self, pattern: ResourcePattern) -> bool:
        if self.resource_type not in {None, pattern.resource_type}:
            return False
        if self.pattern_type is PatternType.MATCH:
            return self.name is None or pattern.matches(self.name)
        if self.pattern_type not in {PatternType.ANY, pattern.pattern_type}:
            return False
        return self.name in {None, pattern.name}

    def matches_entry(self, entry: AclEntry) -> bool:
        return (
            (self.principal is None or self.principal == entry.principal)
            and (self.host is None or self.host == entry.host)
            and (self.operation is None or self.operation is entry.operation)
            and (self.permission_type is None or self.permission_type is entry.permission_type)
        )


def principal_of(text: str) -> str:
    """Return the principal that somebody has typed: `alice` is short for `User:alice`."""
    return text if ":" in text else f"User:{text}"


class InvalidAcl(KafkaError, code=ErrorCode.INVALID_REQUEST):
    """An ACL or a filter is invalid."""


def new_binding(
    *,
    resource_type: int,
    resource_name: str,
    pattern_type: int,
    principal: str,
    host: str,
    operation: int,
    permission_type: int,
) -> AclBinding:
    """Return the ACL in these fields of a CreateAcls request, or raise InvalidAcl.

    As in Kafka, the operation need not be one that the resource type has, and the host may be any text. No
    request asks for such an operation, and no client has such a host.
    """
    pattern = ResourcePattern(
        _known(ResourceType, resource_type, "resource type"),
        resource_name,
        _known(PatternType, pattern_type, "pattern type"),
    )
    entry = AclEntry(
        principal,
        host,
        _known(Operation, operation, "operation"),
        _known(PermissionType, permission_type, "permission type"),
    )
    if pattern.pattern_type in {PatternType.ANY, PatternType.MATCH}:
        raise InvalidAcl(f"an ACL cannot have pattern type {pattern.pattern_type.name}, which is for filters")
    if not pattern.name:
        raise InvalidAcl("an ACL cannot have an empty resource name")
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        raise InvalidAcl(f"the only name of a CLUSTER resource is {CLUSTER_NAME}, not {pattern.name!r}")
    try:
        Principal.parse(entry.principal)
    except ValueError as error:
        raise InvalidAcl(str(error)) from None
    return AclBinding(pattern, entry)


def new_filter(
    *,
    resource_type: int,
    resource_name: str | None,
    pattern_type: int,
    principal: str | None,
    host: str | None,
    operation: int,
    permission_type: int,
) -> AclFilter:
    """Return the filter in these fields of a DescribeAcls or DeleteAcls request, or raise InvalidAcl."""
    return AclFilter(
        _known_or_any(ResourceType, resource_type, "resource type"),
        resource_name,
        _known(PatternType, pattern_type, "pattern type"),
        principal,
        host,
        _known_or_any(Operation, operation, "operation"),
        _known_or_any(PermissionType, permission_type, "permission type"),
    )


def _known_or_any(kind: type[Number], number: int, what: str) -> Number | None:
    return None if number == _ANY else _known(kind, number, what)


def _known(kind: type[Number], number: int, what: str) -> Number:
    try:
        return kind(number)
    except ValueError:
        raise InvalidAcl(f"{what} {number} is unknown or not allowed here") from None
