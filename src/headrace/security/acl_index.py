"""All ACLs of a cluster, arranged so that decisions find them.

A decision costs as much as the patterns that match the resource, and a change as much as the pattern that
changes, however many ACLs there are. Entries become bit sets of operations, per principal and host, so that
one search answers for every operation.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from ipaddress import IPv6Address
from typing import Final, NamedTuple, TypeVar

from headrace.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
)
from headrace.security.authorization import Operation, ResourceType

EVERY_OPERATION: Final = sum(1 << operation for operation in Operation)

Key = TypeVar("Key")


class Permissions(NamedTuple):
    """The operations that ACLs allow and deny, as bit sets. An entry for ALL sets every bit."""

    allowed: int = 0
    denied: int = 0


class Subject(NamedTuple):
    """Whom an entry is about. The host is canonical."""

    principal: str
    host: str


class _PatternAcls(NamedTuple):
    """The ACLs of one resource pattern. They are replaced as a whole, never changed."""

    entries: frozenset[AclEntry]
    permissions: Mapping[Subject, Permissions]

    @classmethod
    def of(cls, entries: Iterable[AclEntry]) -> "_PatternAcls":
        entries = frozenset(entries)
        permissions: dict[Subject, Permissions] = {}
        for entry in entries:
            subject = _subject_of(entry)
            allowed, denied = permissions.get(subject, (0, 0))
            if entry.permission_type is PermissionType.ALLOW:
                allowed |= _operation_bits(entry)
            else:
                denied |= _operation_bits(entry)
            permissions[subject] = Permissions(allowed, denied)
        return cls(entries, permissions)


_Mention = tuple[ResourceType, PermissionType, Operation, Subject]
"""What `_patterns` finds patterns by."""


class AclIndex:
    """The ACLs of a cluster. `version` grows with every change, and so invalidates what was derived."""

    def __init__(self, acls: Mapping[ResourcePattern, Iterable[AclEntry]] | None = None) -> None:
        self.version = 0
        self._total = 0
        self._literal: dict[ResourceType, dict[str, _PatternAcls]] = {each: {} for each in ResourceType}
        self._prefixed: dict[ResourceType, dict[str, _PatternAcls]] = {each: {} for each in ResourceType}
        # How many prefixed patterns there are of each length: lengths that none has are not tried.
        self._prefix_lengths: dict[ResourceType, Counter[int]] = {each: Counter() for each in ResourceType}
        self._patterns: dict[_Mention, set[ResourcePattern]] = {}
        self._principals: Counter[str] = Counter()  # how many patterns have entries for a principal
        self._hosts: Counter[str] = Counter()
        self.replace_all(acls or {})

    def __len__(self) -> int:
        return self._total

    def entries(self, pattern: ResourcePattern) -> frozenset[AclEntry]:
        found = self._like(pattern).get(pattern.name)
        return found.entries if found else frozenset()

    def names(self, resource_type: ResourceType, pattern_type: PatternType) -> list[str]:
        return list(self._like(ResourcePattern(resource_type, "", pattern_type)))

    def replace(self, pattern: ResourcePattern, entries: Iterable[AclEntry]) -> None:
        """Replace all entries of a pattern; without entries the pattern is removed."""
        new = _PatternAcls.of(entries)
        if new.entries == self.entries(pattern):
            return
        if old := self._like(pattern).pop(pattern.name, None):
            self._count(pattern, old, -1)
        if new.entries:
            self._like(pattern)[pattern.name] = new
            self._count(pattern, new, 1)
        self.version += 1

    def replace_all(self, acls: Mapping[ResourcePattern, Iterable[AclEntry]]) -> None:
        """Replace the ACLs of the whole cluster; patterns whose entries are the same stay as they are."""
        for pattern, _ in self._all():
            if pattern not in acls:
                self.replace(pattern, ())
        for pattern, entries in acls.items():
            self.replace(pattern, entries)

    def permissions(
        self, subjects: Sequence[Subject], resource_type: ResourceType, name: str
    ) -> Permissions | None:
        """Return what the subjects are allowed and denied on a resource, or None if no pattern matches it."""
        literal, prefixed = self._literal[resource_type], self._prefixed[resource_type]
        of_patterns = [literal.get(name), literal.get(WILDCARD)]
        if prefixed:
            of_patterns += [prefixed.get(prefix) for prefix in self.prefixes(resource_type, name)]
        matching = [acls for acls in of_patterns if acls]
        if not matching:
            return None
        allowed = denied = 0
        for acls in matching:
            for subject in subjects:
                if found := acls.permissions.get(subject):
                    allowed |= found.allowed
                    denied |= found.denied
        return Permissions(allowed, denied)

    def patterns(
        self,
        subjects: Iterable[Subject],
        resource_type: ResourceType,
        permission_type: PermissionType,
        operation: Operation,
    ) -> list[AbstractSet[ResourcePattern]]:
        """Return sets of the patterns that have such an entry for one of the subjects, or one for ALL."""
        found = (
            self._patterns.get((resource_type, permission_type, each, subject))
            for subject in subjects
            for each in dict.fromkeys((operation, Operation.ALL))
        )
        return [patterns for patterns in found if patterns]

    def prefixes(self, resource_type: ResourceType, name: str) -> Iterator[str]:
        """Yield the beginnings of a name that are as long as one of the prefixed patterns."""
        for length in self._prefix_lengths[resource_type]:
            if length <= len(name):
                yield name[:length]

    def names_principal(self, principal: str) -> bool:
        return principal in self._principals

    def names_host(self, host: str) -> bool:
        """Return whether an ACL is about this host, which is canonical."""
        return host in self._hosts

    def find(self, wanted: AclFilter) -> Iterator[AclBinding]:
        """Yield the ACLs that a filter selects. Changes during the search do not disturb it."""
        patterns = self._all() if wanted.name is None else self._named(wanted.resource_type, wanted.name)
        for pattern, acls in patterns:
            if wanted.matches_pattern(pattern):
                for entry in acls.entries:
                    if wanted.matches_entry(entry):
                        yield AclBinding(pattern, entry)

    def _named(
        self, resource_type: ResourceType | None, name: str
    ) -> list[tuple[ResourcePattern, _PatternAcls]]:
        """Return the patterns that a filter with this name can select, and maybe others."""
        candidates: list[ResourcePattern] = []
        for type_ in ResourceType if resource_type is None else (resource_type,):
            candidates += [ResourcePattern(type_, literal) for literal in dict.fromkeys((name, WILDCARD))]
            prefixes = self.prefixes(type_, name)
            candidates += [ResourcePattern(type_, prefix, PatternType.PREFIXED) for prefix in prefixes]
        named = ((pattern, self._like(pattern).get(pattern.name)) for pattern in candidates)
        return [(pattern, acls) for pattern, acls in named if acls]

    def _like(self, pattern: ResourcePattern) -> dict[str, _PatternAcls]:
        """Return the ACLs of the patterns of the same types, by name."""
        prefixed = pattern.pattern_type is PatternType.PREFIXED
        return (self._prefixed if prefixed else self._literal)[pattern.resource_type]

    def _all(self) -> Iterator[tuple[ResourcePattern, _PatternAcls]]:
        """Yield every pattern that there is when the first one is asked for."""
        snapshot = [
            (kind, resource_type, list(by_name.items()))
            for kind, types in ((PatternType.LITERAL, self._literal), (PatternType.PREFIXED, self._prefixed))
            for resource_type, by_name in types.items()
        ]
        for kind, resource_type, patterns in snapshot:
            for name, acls in patterns:
                yield ResourcePattern(resource_type, name, kind), acls

    def _count(self, pattern: ResourcePattern, acls: _PatternAcls, by: int) -> None:
        """Count the ACLs of a pattern that is added (`by` 1) or removed (-1)."""
        if pattern.pattern_type is PatternType.PREFIXED:
            _add(self._prefix_lengths[pattern.resource_type], len(pattern.name), by)
        self._total += by * len(acls.entries)
        for entry in acls.entries:
            mention = pattern.resource_type, entry.permission_type, entry.operation, _subject_of(entry)
            patterns = self._patterns.setdefault(mention, set())
            if by > 0:
                patterns.add(pattern)
            else:
                patterns.discard(pattern)
            if not patterns:
                del self._patterns[mention]
        for subject in acls.permissions:
            _add(self._principals, subject.principal, by)
            _add(self._hosts, subject.host, by)


def subjects_of(principal: str, host: str) -> tuple[Subject, ...]:
    """Return whose entries apply to a principal at a host."""
    address = canonical_host(host)
    return (
        Subject(principal, address),
        Subject(principal, WILDCARD),
        Subject(WILDCARD_PRINCIPAL, address),
        Subject(WILDCARD_PRINCIPAL, WILDCARD),
    )


def canonical_host(host: str) -> str:
    """Return one text for all the ways to write an IPv6 address; other hosts stay as they are.

    Kafka writes 0:0:0:0:0:0:0:1 where Python writes ::1. An IPv4 address that is mapped to IPv6 is IPv4.
    """
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


def _subject_of(entry: AclEntry) -> Subject:
    return Subject(entry.principal, canonical_host(entry.host))


def _operation_bits(entry: AclEntry) -> int:
    return EVERY_OPERATION if entry.operation is Operation.ALL else 1 << entry.operation


def _add(counts: Counter[Key], key: Key, by: int) -> None:
    counts[key] += by
    if not counts[key]:
        del counts[key]
