"""CreateAcls (key 30), v1-v3.

Behaviour: adds ACLs; one that exists already is no error. Each is created on its own. They are in force on
           this broker when it answers, and on the others when they have read the change from ZooKeeper.
           SECURITY_DISABLED without an authorizer.
Versions:  v1 prefixed patterns; v2 flexible; v3 resources of type USER.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import Turns
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.schema.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.acls import AclEntry, ResourcePattern, new_binding
from headrace.security.authorization import Operation, Permission, ResourceType

_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)


@handles(ApiKey.CREATE_ACLS, range(1, 4), requires=_ALTER)
async def create_acls(request: CreateAclsRequest, context: Context) -> CreateAclsResponse:
    results: list[AclCreationResult] = [AclCreationResult()] * len(request.creations)
    by_pattern: dict[ResourcePattern, list[tuple[int, AclEntry]]] = {}
    turns = Turns()
    for number, creation in enumerate(request.creations):
        try:
            context.require(_ALTER)
            context.broker.ensure_authorizer()
            pattern, entry = new_binding(
                resource_type=creation.resource_type,
                resource_name=creation.resource_name,
                pattern_type=creation.resource_pattern_type,
                principal=creation.principal,
                host=creation.host,
                operation=creation.operation,
                permission_type=creation.permission_type,
            )
            by_pattern.setdefault(pattern, []).append((number, entry))
        except FAILURES as error:
            results[number] = AclCreationResult(**error_fields(error))
        await turns.next()
    for pattern, numbered in by_pattern.items():
        entries = frozenset(entry for _, entry in numbered)
        try:
            await context.broker.session.reconnected()
            await context.broker.ensure_authorizer().change(pattern, entries.union)
        except FAILURES as error:
            for number, _ in numbered:
                results[number] = AclCreationResult(**error_fields(error))
        await turns.next()
    return CreateAclsResponse(results=results)
