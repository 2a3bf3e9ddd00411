"""The filters of the list of ACLs, as the address of the page has them, and what they come to. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex, subjects_of
from headrace.security.acls import (
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    principal_of,
)
from headrace.security.authorization import CLUSTER_NAME, OPERATIONS, ResourceType
from headrace.security.principals import Principal

LONGEST: Final = 1000  # most characters of a principal or a name
ALLOWED, DENIED, NO_ACL = "allowed", "denied", "no ACL"
_ANY_HOST: Final = "0.0.0.0"  # noqa: S104  an address that no client has: only ACLs for all hosts apply


@dataclass(frozen=True, slots=True, kw_only=True)
class AclForm:
    """The filters that brokers apply. A name selects all ACLs that apply to the resource of this name."""

    principal: str = ""
    resource_type: str = ""
    name: str = ""
    permission: str = ""

    @property
    def filter(self) -> AclFilter:
        return AclFilter(
            ResourceType[self.resource_type] if self.resource_type else None,
            self.name or None,
            PatternType.MATCH if self.name else PatternType.ANY,
            self.principal or None,
            permission_type=PermissionType[self.permission] if self.permission else None,
        )

    @property
    def is_default(self) -> bool:
        return self == AclForm()

    @property
    def resource_name(self) -> str:
        """The name of the resource that the filters select, or nothing if they select several."""
        if self.resource_type == ResourceType.CLUSTER.name:
            return CLUSTER_NAME
        return self.name if self.resource_type else ""


def read(fields: Mapping[str, str]) -> AclForm:
    """Return the filters of an address; a type or permission that does not exist is ignored."""
    resource_type, permission = fields.get("type", ""), fields.get("permission", "")
    principal = fields.get("principal", "").strip()[:LONGEST]
    return AclForm(
        principal=principal_of(principal) if principal else "",
        resource_type=resource_type if resource_type in ResourceType.__members__ else "",
        name=fields.get("name", "").strip()[:LONGEST],
        permission=permission if permission in PermissionType.__members__ else "",
    )


def effective_operations(form: AclForm, acls: Iterable[AclBinding]) -> dict[str, str]:
    """Return whether ACLs allow or deny each operation of one principal on one resource, from any host.

    The result is empty unless the filters select one principal, one resource and both permissions.
    """
    if not form.principal or not form.resource_name or form.permission:
        return {}
    by_pattern: dict[ResourcePattern, list[AclEntry]] = {}
    for each in acls:
        by_pattern.setdefault(each.pattern, []).append(each.entry)
    index, resource = AclIndex(by_pattern), ResourceType[form.resource_type]
    principal, name = Principal.parse(form.principal), form.resource_name
    allowed = AclAuthorizer(index).authorized_operations(principal, _ANY_HOST, resource, name)
    found = index.permissions(subjects_of(form.principal, _ANY_HOST), resource, name)
    denied = 0 if found is None else found.denied
    return {
        each.name: ALLOWED if allowed >> each & 1 else DENIED if denied >> each & 1 else NO_ACL
        for each in OPERATIONS[resource]
    }
