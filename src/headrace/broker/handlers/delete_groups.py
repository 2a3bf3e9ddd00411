"""DeleteGroups (key 42), v0-v3.

Behaviour: deletes empty groups and their offsets.
Versions:  v2 flexible; v3 error messages.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Final

from headrace.broker.coordinator_replies import respond_after
from headrace.broker.coordinator_shard import outcome
from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_groups
from headrace.broker.slices import Steps, each
from headrace.group.errors import GroupIdNotFound
from headrace.protocol.errors import KafkaError
from headrace.protocol.schema.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_DELETE: Final = on_groups(Operation.DELETE)


@handles(ApiKey.DELETE_GROUPS, range(4), requires=_DELETE)
def delete_groups(
    request: DeleteGroupsRequest, context: Context
) -> Steps[DeleteGroupsResponse | Awaitable[DeleteGroupsResponse]]:
    replies: dict[str, asyncio.Future[Any] | KafkaError] = {}

    def delete(group_id: str) -> None:
        try:
            context.require(_DELETE, group_id)
            replies[group_id] = context.broker.groups.shard(group_id).write(
                lambda machine, now_ms: machine.delete_group(group_id, now_ms)
            )
        except KafkaError as error:
            replies[group_id] = error

    def result(group_id: str) -> DeletableGroupResult:
        reply = replies[group_id]
        error = reply if isinstance(reply, KafkaError) else outcome(reply)
        if error is None:
            return DeletableGroupResult(group_id=group_id)
        # The code of a group that does not exist says it all; a request may name very many of them.
        message = None if isinstance(error, GroupIdNotFound) else str(error)
        return DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=message)

    def build() -> Steps[DeleteGroupsResponse]:
        return DeleteGroupsResponse(results=(yield from each(result, replies)))

    yield from each(delete, dict.fromkeys(request.groups_names))
    pending = [reply for reply in replies.values() if isinstance(reply, asyncio.Future)]
    return (yield from respond_after(pending, build))
