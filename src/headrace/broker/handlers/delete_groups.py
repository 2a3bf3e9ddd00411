"""DeleteGroups (key 42), v0-v2.

Behaviour: forgets groups that have no members, with their offsets.
Versions:  v2 flexible.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.groups import after_commit
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.DELETE_GROUPS, range(3))
@after_commit
def delete_groups(request: DeleteGroupsRequest, context: Context) -> Steps[DeleteGroupsResponse]:
    def delete(group_id: str) -> DeletableGroupResult:
        return DeletableGroupResult(group_id=group_id, error_code=_delete(group_id, context))

    return DeleteGroupsResponse(results=(yield from each(delete, dict.fromkeys(request.groups_names))))


def _delete(group_id: str, context: Context) -> ErrorCode:
    try:
        context.broker.groups.shard(group_id).decide(
            lambda coordinator, now_ms: coordinator.delete_group(group_id, now_ms)
        )
    except FAILURES as error:
        return error_code(error)
    return ErrorCode.NONE
