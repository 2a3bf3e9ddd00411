"""ACLs, grouped by principal or by resource; and what they come to for one principal and one resource."""

from collections.abc import Callable
from itertools import groupby
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response

from headrace.client.errors import ClientError
from headrace.gateway.admin.acls import LONGEST, AclAnswer, answer_of, read_acls
from headrace.gateway.console import acl_filter
from headrace.gateway.console.pages import PageRoute, page, requiring
from headrace.gateway.console.tables import table_of
from headrace.gateway.current import clients_of
from headrace.gateway.reach import ReachDep
from headrace.protocol.errors import ErrorCode
from headrace.security.acls import CONSUMER_OPERATIONS, PRODUCER_OPERATIONS, WILDCARD_PRINCIPAL
from headrace.security.authorization import CLUSTER_NAME, OPERATIONS, Operation, ResourceType

router = APIRouter(route_class=PageRoute, include_in_schema=False)

PRINCIPAL, RESOURCE = "principal", "resource"
"""What the table is grouped by, which is also what it is sorted by."""


def _principal(acl: AclAnswer) -> str:
    return acl.principal


def _resource(acl: AclAnswer) -> tuple[str, str, str]:
    return acl.resource_type, acl.resource_name, acl.pattern_type


_GROUPS: Final[dict[str, Callable[[AclAnswer], object]]] = {PRINCIPAL: _principal, RESOURCE: _resource}
_COLUMNS: Final = {
    PRINCIPAL: lambda each: (_principal(each), _resource(each), each.operation, each.permission, each.host),
    RESOURCE: lambda each: (_resource(each), _principal(each), each.operation, each.permission, each.host),
}
_TYPES: Final = {
    kind.name: {
        "operations": [Operation.ALL.name, *(each.name for each in operations)],
        "producer": [each.name for each in PRODUCER_OPERATIONS.get(kind, ())],
        "consumer": [each.name for each in CONSUMER_OPERATIONS.get(kind, ())],
    }
    for kind, operations in OPERATIONS.items()
}
"""The operations of each type of resource, and those that producers and consumers need, for the dialog."""


@router.get("/ui/acls")
def acls(request: Request, reach: ReachDep) -> Response:
    """Brokers apply the filters. With a principal, ACLs of `User:*` are listed, too: they apply to it."""
    form = acl_filter.read(request.query_params)
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
        text=lambda each: f"{each.principal} {each.resource_type} {each.resource_name} {each.operation}",
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
        effective=acl_filter.effective_operations(form, found),
        types=_TYPES,
        operations=[each.name for each in Operation],
        cluster=CLUSTER_NAME,
        cluster_type=ResourceType.CLUSTER.name,
        everybody=WILDCARD_PRINCIPAL,
        longest=LONGEST,
    )
