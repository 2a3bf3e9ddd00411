"""DeleteGroups (key 42), v0-v3.

Behaviour: deletes empty groups and their offsets.
Versions:  v2 flexible; v3 error messages.
"""

import asyncio
from typing import Any, Final

from headrace.broker.coordinators.shard import outcome
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_groups
from headrace.broker.slices import Turns
from headrace.coordinators.group.errors import GroupIdNotFound
from headrace.protocol.errors import KafkaError
from headrace.protocol.schema import delete_groups as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_DELETE: Final = on_groups(Operation.DELETE)
_TOGETHER: Final = 500  # groups whose records wait together until they are committed


@handles(ApiKey.DELETE_GROUPS, range(4), requires=_DELETE)
async def delete_groups(request: api.DeleteGroupsRequest, context: Context) -> api.DeleteGroupsResponse:
    results: dict[str, api.DeletableGroupResult] = {}
    pending: dict[str, asyncio.Future[Any]] = {}
    turns = Turns()
    for group_id in request.groups_names:
        await turns.next()
        if group_id in results:
            continue
        results[group_id] = api.DeletableGroupResult(group_id=group_id)
        try:
            pending[group_id] = _delete(group_id, context)
        except KafkaError as error:  # which is not kept: its traceback would keep all frames up to here
            results[group_id] = _refused(group_id, error)
        if len(pending) == _TOGETHER:
            await _settle(pending, results)
    await _settle(pending, results)
    return api.DeleteGroupsResponse(results=list(results.values()))


def _delete(group_id: str, context: Context) -> "asyncio.Future[Any]":
    context.require(_DELETE, group_id)
    shard = context.broker.groups.shard(group_id)
    return shard.write(lambda machine, now_ms: machine.delete_group(group_id, now_ms))


async def _settle(
    pending: "dict[str, asyncio.Future[Any]]", results: dict[str, api.DeletableGroupResult]
) -> None:
    """Wait until all of `pending` are committed or refused, replace their results, and empty it."""
    if pending:
        await asyncio.wait(pending.values())
    for group_id, reply in pending.items():
        error = outcome(reply)
        if error is not None:
            results[group_id] = _refused(group_id, error)
    pending.clear()


def _refused(group_id: str, error: KafkaError) -> api.DeletableGroupResult:
    # The code of a group that does not exist says it all; a request may name very many of them.
    message = None if isinstance(error, GroupIdNotFound) else str(error)
    return api.DeletableGroupResult(group_id=group_id, error_code=error.code, error_message=message)
