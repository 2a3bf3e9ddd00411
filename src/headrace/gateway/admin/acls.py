"""ACLs: list, create, delete. Brokers without an authorizer refuse all of that with SECURITY_DISABLED."""

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from pydantic import Field, StrictStr

from headrace.gateway.problems import answers, bad_request
from headrace.gateway.reach import Reach, ReachDep
from headrace.gateway.rest.bodies import GROUP, NO_NUL, Body
from headrace.security.acls import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclFilter,
    InvalidAcl,
    PatternType,
    PermissionType,
    new_binding,
    principal_of,
)
from headrace.security.authorization import Operation, ResourceType

LONGEST: Final = GROUP  # characters of a resource's name, a principal or a host
AT_ONCE: Final = 100  # most ACLs that a request may create or delete
LIMIT: Final = 10_000  # most ACLs in a response

router = APIRouter(tags=["ACLs"], responses=answers(400, 403, 503))

ResourceTypeName = Literal["TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"]
PatternTypeName = Literal["LITERAL", "PREFIXED"]
PermissionName = Literal["ALLOW", "DENY"]
_Usual = Literal["ALL", "READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"]
_Configs = Literal["DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"]
_Tokens = Literal["CREATE_TOKENS", "DESCRIBE_TOKENS", "TWO_PHASE_COMMIT"]
OperationName = Literal[_Usual, _Configs, _Tokens]
Text = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST, pattern=NO_NUL)]


class Acl(Body):
    """A principal may, or may not, perform an operation on the resources of a pattern, from a host."""

    resource_type: ResourceTypeName
    resource_name: Annotated[Text, Field(description="A name, a prefix, or * for all; kafka-cluster.")]
    pattern_type: PatternTypeName = "LITERAL"
    principal: Annotated[Text, Field(description="TYPE:NAME; without a type it is a User.")]
    permission: PermissionName = "ALLOW"
    operation: OperationName
    host: Annotated[Text, Field(description="An IP address, or * for all.")] = WILDCARD

    def binding(self) -> AclBinding:
        """Return the ACL in Kafka's model; a Problem if there can be no such ACL."""
        try:
            return new_binding(
                resource_type=ResourceType[self.resource_type],
                resource_name=self.resource_name,
                pattern_type=PatternType[self.pattern_type],
                principal=principal_of(self.principal),
                host=self.host,
                operation=Operation[self.operation],
                permission_type=PermissionType[self.permission],
            )
        except InvalidAcl as error:
            raise bad_request(str(error)) from None


def _filter_text(about: str) -> object:
    return Query(description=about, min_length=1, max_length=LONGEST, pattern=NO_NUL)


@router.get("/acls")
def acls(
    reach: ReachDep,
    *,
    resource_type: ResourceTypeName | None = None,
    resource_name: Annotated[str | None, _filter_text("Only of this name.")] = None,
    pattern_type: Annotated[
        Literal["ANY", "MATCH", "LITERAL", "PREFIXED"],
        Query(description="MATCH: all that apply to a resource of this name, also those of prefixes and *."),
    ] = "ANY",
    principal: Annotated[str | None, _filter_text("Only of this principal.")] = None,
    effective: Annotated[
        bool, Query(description="Also ACLs of `User:*`, which apply to `principal`, too.")
    ] = False,
    host: Annotated[str | None, _filter_text("Only with this host.")] = None,
    operation: OperationName | None = None,
    permission: PermissionName | None = None,
    limit: Annotated[int, Query(description="Most of them to return.", ge=1, le=LIMIT)] = 1000,
) -> dict[str, Any]:
    """Return the ACLs that match all filters; `total` counts those beyond `limit`, too."""
    selected = AclFilter(
        None if resource_type is None else ResourceType[resource_type],
        resource_name,
        PatternType[pattern_type],
        None if principal is None else principal_of(principal),
        host,
        None if operation is None else Operation[operation],
        None if permission is None else PermissionType[permission],
    )
    found = read_acls(reach, selected, effective=effective)
    return {"acls": list(map(answer_of, found[:limit])), "total": len(found)}


def read_acls(reach: Reach, selected: AclFilter, *, effective: bool) -> Sequence[AclBinding]:
    """Return the ACLs that the filter selects; with `effective` those of its principal and of everybody."""
    found = reach.acls.list_acls(selected)
    if not effective or selected.principal in {None, WILDCARD_PRINCIPAL}:
        return found
    return sorted(found + reach.acls.list_acls(selected._replace(principal=WILDCARD_PRINCIPAL)))


class AclsBody(Body):
    acls: Annotated[list[Acl], Field(min_length=1, max_length=AT_ONCE)]

    def bindings(self) -> list[AclBinding]:
        return list(dict.fromkeys(acl.binding() for acl in self.acls))


@router.post("/acls", status_code=201)
def create_acls(body: AclsBody, reach: ReachDep) -> list[Acl]:
    """Create these ACLs, and return them; those that exist stay as they are."""
    bindings = body.bindings()
    reach.acls.create_acls(bindings)
    return [answer_of(binding) for binding in bindings]


@router.delete("/acls")
def delete_acls(body: AclsBody, reach: ReachDep) -> list[Acl]:
    """Delete exactly these ACLs, and return those that existed. Filters are not accepted here."""
    exactly = [
        AclFilter(kind, name, pattern_type, principal, host, operation, permission)
        for (kind, name, pattern_type), (principal, host, operation, permission) in body.bindings()
    ]
    return [answer_of(acl) for acl in reach.acls.delete_acls(exactly)]


def answer_of(acl: AclBinding) -> Acl:
    return Acl.model_construct(
        resource_type=acl.pattern.resource_type.name,
        resource_name=acl.pattern.name,
        pattern_type=acl.pattern.pattern_type.name,
        principal=acl.entry.principal,
        permission=acl.entry.permission_type.name,
        operation=acl.entry.operation.name,
        host=acl.entry.host,
    )
