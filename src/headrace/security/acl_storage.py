"""ACLs in ZooKeeper, as Kafka up to 3.9 keeps them: paths and content.

There is a znode per resource pattern, with all its entries: /kafka-acl/Topic/orders for the topic, and
/kafka-acl-extended/prefixed/Topic/orders for all topics with the prefix. A broker that changes one of them
then creates a sequential znode that names the pattern, and every broker reads the pattern's znode again.
Notifications about literal and prefixed patterns are in different directories, and in different formats.
"""

import json
import re
from collections.abc import Iterable, Mapping
from enum import IntEnum
from functools import cache
from typing import Any, Final, TypeVar

from headrace.security.acls import AclEntry, InvalidAcl, PatternType, PermissionType, ResourcePattern
from headrace.security.authorization import Operation, ResourceType
from headrace.security.principals import Principal

ACLS: Final = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
"""Where the patterns of each type are, in a directory per resource type."""

ACL_CHANGES: Final = {
    PatternType.LITERAL: "/kafka-acl-changes",
    PatternType.PREFIXED: "/kafka-acl-extended-changes",
}
"""Where the notifications about patterns of each type are."""

CHANGE_PREFIX: Final = "acl_changes_"  # ZooKeeper appends a sequence number

_VERSION: Final = 1
# The characters that ZooKeeper refuses in a path, and the slash, which would begin a child of the znode.
_UNSTORABLE: Final = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\U0010ffff]")

Named = TypeVar("Named", bound=IntEnum)


class UnreadableAcls(ValueError):
    """The content of a znode is not what Kafka writes."""


def directory(resource_type: ResourceType, pattern_type: PatternType) -> str:
    """Return the path whose children have the names of the patterns of these types."""
    return f"{ACLS[pattern_type]}/{_pascal_case(resource_type)}"


def path(pattern: ResourcePattern) -> str:
    """Return the path of a pattern. InvalidAcl says that ZooKeeper cannot have a znode of this name."""
    if pattern.name in {".", ".."} or _UNSTORABLE.search(pattern.name):
        raise InvalidAcl(
            f"resource name {pattern.name!r} cannot be stored in ZooKeeper, which refuses '/', '.', '..', "
            "control characters and characters beyond U+FFEF"
        )
    return f"{directory(pattern.resource_type, pattern.pattern_type)}/{pattern.name}"


def encode(entries: Iterable[AclEntry]) -> bytes:
    acls = [
        {
            "principal": entry.principal,
            "permissionType": _pascal_case(entry.permission_type),
            "operation": _pascal_case(entry.operation),
            "host": entry.host,
        }
        for entry in sorted(entries)
    ]
    return _dump({"version": _VERSION, "acls": acls})


def decode(data: bytes | None) -> frozenset[AclEntry]:
    """Return the entries in the content of a pattern's znode. ValueError says what is wrong.

    An entry that cannot be read is an error, because without it too much might be allowed.
    """
    if not data:
        return frozenset()
    content = _load(data)
    acls = content.get("acls")
    if not isinstance(acls, list):
        raise UnreadableAcls(f"expected a list of ACLs, got {acls!r}")
    return frozenset(map(_decode_entry, acls))


def encode_change(pattern: ResourcePattern) -> bytes:
    """Return the content of a notification about a pattern: `TOPIC:orders`, or JSON for a prefix."""
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return _dump(
        {
            "version": _VERSION,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_change(data: bytes, pattern_type: PatternType) -> ResourcePattern:
    """Return the pattern that a notification names. ValueError says what is wrong.

    `pattern_type` is that of the directory, because the format depends on it.
    """
    if pattern_type is PatternType.LITERAL:
        type_, colon, name = data.decode().partition(":")
        if not colon:
            raise UnreadableAcls(f"expected TYPE:NAME, got {data!r}")
    else:
        content = _load(data)
        type_, name = _text(content, "resourceType"), _text(content, "name")
        pattern_type = _parse(PatternType, _text(content, "patternType"))
    return ResourcePattern(_parse(ResourceType, type_), name, pattern_type)


def _decode_entry(content: Any) -> AclEntry:
    if not isinstance(content, dict):
        raise UnreadableAcls(f"expected an ACL, got {content!r}")
    return AclEntry(
        str(Principal.parse(_text(content, "principal"))),
        _text(content, "host"),
        _parse(Operation, _text(content, "operation")),
        _parse(PermissionType, _text(content, "permissionType")),
    )


def _load(data: bytes) -> dict[str, Any]:
    content = json.loads(data)
    if not isinstance(content, dict) or content.get("version") != _VERSION:
        raise UnreadableAcls(f"expected an object of version {_VERSION}, got {data[:200]!r}")
    return content


def _text(content: Mapping[str, Any], key: str) -> str:
    text = content.get(key)
    if not isinstance(text, str):
        raise UnreadableAcls(f"expected text as {key!r}, got {text!r}")
    return text


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _pascal_case(member: IntEnum) -> str:
    """Return the name as Kafka stores it: TransactionalId for TRANSACTIONAL_ID."""
    return member.name.title().replace("_", "")


def _parse(kind: type[Named], text: str) -> Named:
    """Return the member of this name. Case and underscores do not matter: Kafka's versions vary them."""
    number = _numbers(kind).get(text.replace("_", "").upper())
    if number is None:
        raise UnreadableAcls(f"{text!r} is not one of {', '.join(map(_pascal_case, kind))}")
    return kind(number)


@cache
def _numbers(kind: type[IntEnum]) -> Mapping[str, int]:
    return {member.name.replace("_", ""): member.value for member in kind}


PERSISTENT_PATHS: Final = (
    *(directory(resource_type, pattern_type) for pattern_type in ACLS for resource_type in ResourceType),
    *ACL_CHANGES.values(),
)
"""Znodes that must exist before the first ACL is created."""
