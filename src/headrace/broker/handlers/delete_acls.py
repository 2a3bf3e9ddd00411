"""DeleteAcls (key 31), v1-v3.

Behaviour: deletes the ACLs that each filter selects, and returns them. They are out of force on this broker
           when it answers, and on the others when they have read the change from ZooKeeper.
           SECURITY_DISABLED without an authorizer.
Versions:  v1 prefixed patterns; v2 flexible; v3 resources of type USER.
"""

from functools import partial
from typing import Final

from headrace.broker.handlers.describe_acls import filter_of
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.security.acl_store import AclStore
from headrace.broker.slices import STEP, Turns, one_by_one
from headrace.broker.translate import FAILURES, Failure, error_fields
from headrace.protocol.schema import delete_acls as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.acls import AclEntry, AclFilter, ResourcePattern
from headrace.security.authorization import Operation, Permission, ResourceType

_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)


@handles(ApiKey.DELETE_ACLS, range(1, 4), requires=_ALTER)
async def delete_acls(request: api.DeleteAclsRequest, context: Context) -> api.DeleteAclsResponse:
    results = await one_by_one(partial(_delete, context=context), request.filters)
    return api.DeleteAclsResponse(filter_results=results)


async def _delete(requested: api.DeleteAclsFilter, context: Context) -> api.DeleteAclsFilterResult:
    try:
        context.require(_ALTER)
        store = context.broker.ensure_authorizer()
        wanted = filter_of(requested)
        await context.broker.session.reconnected()
    except FAILURES as error:
        return api.DeleteAclsFilterResult(matching_acls=(), **error_fields(error))
    patterns: dict[ResourcePattern, list[AclEntry]] = {}
    turns = Turns()
    for number, (pattern, entry) in enumerate(store.index.find(wanted)):
        patterns.setdefault(pattern, []).append(entry)
        if not number % STEP:
            await turns.next()
    deleted: list[api.DeleteAclsMatchingAcl] = []
    for pattern, matching in patterns.items():
        deleted += await _delete_from(pattern, matching, wanted, store)
    return api.DeleteAclsFilterResult(matching_acls=deleted)


async def _delete_from(
    pattern: ResourcePattern, matching: list[AclEntry], wanted: AclFilter, store: AclStore
) -> list[api.DeleteAclsMatchingAcl]:
    """Delete the entries of a pattern that the filter selects; return them, with the error if it failed."""
    try:
        old = await store.change(
            pattern, lambda entries: frozenset(entry for entry in entries if not wanted.matches_entry(entry))
        )
    except FAILURES as error:
        return [_result(pattern, entry, error) for entry in matching]
    return [_result(pattern, entry) for entry in sorted(old) if wanted.matches_entry(entry)]


def _result(
    pattern: ResourcePattern, entry: AclEntry, error: Failure | None = None
) -> api.DeleteAclsMatchingAcl:
    return api.DeleteAclsMatchingAcl(
        **({} if error is None else error_fields(error)),
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
