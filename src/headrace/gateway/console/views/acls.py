"""ACLs, grouped by principal or by resource; and what they come to for one principal and one resource."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError
from headrace.gateway.admin.acls import LONGEST, Acl, answer_of, read_acls
from headrace.gateway.console.pages import PageRoute, page, requiring
from headrace.gateway.console.tables import table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import ReachDep
from headrace.protocol.errors import ErrorCode
from headrace.security.acl_authorizer import AclAuthorizer
from headrace.security.acl_index import AclIndex, subjects_of
from headrace.security.acls import (
    CONSUMER_OPERATIONS,
    PRODUCER_OPERATIONS,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclEntry,
    AclFilter,
    PatternType,
    PermissionType,
    ResourcePattern,
    principal_of,
)
from headrace.security.authorization import CLUSTER_NAME, OPERATIONS, Operation, ResourceType
from headrace.security.principals import Principal

LONGEST_FILTER: Final = 1000  # most characters of a principal or a name
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


def read_form(fields: Mapping[str, str]) -> AclForm:
    """Return the filters of an address; a type or permission that does not exist is ignored."""
    resource_type, permission = fields.get("type", ""), fields.get("permission", "")
    principal = fields.get("principal", "").strip()[:LONGEST_FILTER]
    return AclForm(
        principal=principal_of(principal) if principal else "",
        resource_type=resource_type if resource_type in ResourceType.__members__ else "",
        name=fields.get("name", "").strip()[:LONGEST_FILTER],
        permission=permission if permission in PermissionType.__members__ else "",
    )


def effective_operations(form: AclForm, acls: Iterable[AclBinding]) -> dict[str, str]:
    """Return whether ACLs allow or deny each operation of one principal on one resource, from any host.

    The result is empty unless the filters select one principal, one resource and both permissions.
    """
    if not form.principal or not form.resource_name or form.permission:
        return {}
    by_pattern: dict[ResourcePattern, list[AclEntry]] = {}
    for acl in acls:
        by_pattern.setdefault(acl.pattern, []).append(acl.entry)
    index, resource = AclIndex(by_pattern), ResourceType[form.resource_type]
    principal, name = Principal.parse(form.principal), form.resource_name
    allowed = AclAuthorizer(index).authorized_operations(principal, _ANY_HOST, resource, name)
    found = index.permissions(subjects_of(form.principal, _ANY_HOST), resource, name)
    denied = 0 if found is None else found.denied
    return {
        each.name: ALLOWED if allowed >> each & 1 else DENIED if denied >> each & 1 else NO_ACL
        for each in OPERATIONS[resource]
    }


router = APIRouter(route_class=PageRoute, include_in_schema=False)

PRINCIPAL, RESOURCE = "principal", "resource"
"""What the table is grouped by, which is also what it is sorted by."""


def _principal(acl: Acl) -> str:
    return acl.principal


def _resource(acl: Acl) -> tuple[str, str, str]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


_GROUPS: Final[dict[str, Callable[[Acl], object]]] = {PRINCIPAL: _principal, RESOURCE: _resource}
_COLUMNS: Final = {
    PRINCIPAL: lambda row: (_principal(row), _resource(row), row.operation, row.permission, row.host),
    RESOURCE: lambda row: (_resource(row), _principal(row), row.operation, row.permission, row.host),
}
_TYPES: Final = {
    kind.name: {
        "operations": [Operation.ALL.name, *(operation.name for operation in operations)],
        "producer": [each.name for each in PRODUCER_OPERATIONS.get(kind, ())],
        "consumer": [each.name for each in CONSUMER_OPERATIONS.get(kind, ())],
    }
    for kind, operations in OPERATIONS.items()
}
"""The operations of each type of resource, and those that producers and consumers need, for the dialog."""


@router.get("/ui/acls")
def acls(request: Request, reach: ReachDep) -> Response:
    """Brokers apply the filters. With a principal, ACLs of `User:*` are listed, too: they apply to it."""
    form = read_form(request.query_params)
    try:
        with requiring("ACLs", Operation.DESCRIBE):
            found = clients_of(request).console.acls.get(
                request, lambda: read_acls(reach, form.filter, effective=True), key=form
            )
    except ClientError as error:
        if error.error_code is not ErrorCode.SECURITY_DISABLED:
            raise
        return page(request, "no_authorizer.html", title="ACLs")
    table = table_of(
        request,
        [answer_of(each) for each in found],
        _COLUMNS,
        text=lambda row: f"{row.principal} {row.resource_type} {row.resource_name} {row.operation}",
        sort=PRINCIPAL,
    )
    by = RESOURCE if table.sort.endswith(RESOURCE) else PRINCIPAL
    return page(
        request,
        "acls.html",
        title="ACLs",
        table=table,
        by=by,
        groups=[tuple(rows) for _, rows in groupby(table.rows, _GROUPS[by])],
        form=form,
        effective=effective_operations(form, found),
        types=_TYPES,
        operations=[each.name for each in Operation],
        cluster=CLUSTER_NAME,
        cluster_type=ResourceType.CLUSTER.name,
        everybody=WILDCARD_PRINCIPAL,
        longest=LONGEST,
    )
