"""Heartbeat (key 12), v0-v4.

Behaviour: extends the session of a classic member; REBALANCE_IN_PROGRESS asks the member to rejoin.
Versions:  v3 static members; v4 flexible.
"""

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema.heartbeat import HeartbeatRequest, HeartbeatResponse
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_SUCCESS = HeartbeatResponse()


@handles(ApiKey.HEARTBEAT, range(5), requires=on_group(Operation.READ))
def heartbeat(request: HeartbeatRequest, context: Context) -> HeartbeatResponse:
    try:
        shard = context.broker.groups.shard(request.group_id)
        shard.touch(
            lambda machine, now_ms: machine.heartbeat(
                request.group_id, request.member_id, request.group_instance_id, request.generation_id, now_ms
            )
        )
    except FAILURES as error:
        return HeartbeatResponse(error_code=error_code(error))
    return _SUCCESS
