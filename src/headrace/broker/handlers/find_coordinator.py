"""FindCoordinator (key 10), v0-v6.

Behaviour: returns the coordinator of a group or of a transactional id: the leader of its partition of
           __consumer_offsets or __transaction_state. The topic is created if it does not exist.
Versions:  v1 transactions; v3 flexible; v4 several keys; v6 share groups.
Not yet:   share groups: COORDINATOR_NOT_AVAILABLE, which clients retry.
"""

from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import bounded_repeats
from headrace.broker.requests.requirements import on_groups, on_transactional_ids
from headrace.broker.slices import in_slices, one_by_one
from headrace.broker.translate import FAILURES, error_fields
from headrace.coordinators.errors import CoordinatorNotAvailable
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema import find_coordinator as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_SEVERAL_KEYS, _SHARE_GROUPS = 4, 6
_GROUP, _TRANSACTION, _SHARE = 0, 1, 2

_DESCRIBE: Final = {
    _GROUP: on_groups(Operation.DESCRIBE),
    _TRANSACTION: on_transactional_ids(Operation.DESCRIBE),
}


@handles(ApiKey.FIND_COORDINATOR, range(7), requires=tuple(_DESCRIBE.values()))
async def find_coordinator(
    request: api.FindCoordinatorRequest, context: Context
) -> api.FindCoordinatorResponse:
    if context.version >= _SEVERAL_KEYS:
        keys = await in_slices(bounded_repeats(request.coordinator_keys))
        find = partial(_find, key_type=request.key_type, context=context)
        return api.FindCoordinatorResponse(coordinators=await one_by_one(find, keys))
    one = await _find(request.key, request.key_type, context)
    return api.FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


async def _find(key: str, key_type: int, context: Context) -> api.Coordinator:
    try:
        for coordinator in context.broker.coordinators:
            if coordinator.key_type == key_type:
                context.require(_DESCRIBE[key_type], key)
                await coordinator.topic.ensure()
                node = coordinator.find(key, context.listener.name)
                return api.Coordinator(key=key, node_id=node.id, host=node.host, port=node.port)
        if key_type == _SHARE and context.version >= _SHARE_GROUPS:
            raise CoordinatorNotAvailable("share groups are not supported yet (COORDINATOR_NOT_AVAILABLE)")
        raise InvalidRequest(f"coordinator type {key_type} is unknown (INVALID_REQUEST)")
    except FAILURES as error:
        return api.Coordinator(key=key, node_id=-1, host="", port=-1, **error_fields(error))
