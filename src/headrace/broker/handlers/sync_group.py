"""SyncGroup (key 14), v0-v5.

Behaviour: the leader's request contains the assignments; all responses are sent when they are committed.
Versions:  v3 static members; v4 flexible; v5 protocol type and name, which must be the group's.
"""

from headrace.broker.coordinators.replies import respond
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group
from headrace.broker.results import Result
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.coordinators.group.decision import Sync
from headrace.coordinators.group.errors import InconsistentProtocol
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.sync_group import SyncGroupRequest, SyncGroupResponse
from headrace.security.authorization import Operation

_NAMES_PROTOCOL = 5


@handles(ApiKey.SYNC_GROUP, range(6), requires=on_group(Operation.READ))
def sync_group(request: SyncGroupRequest, context: Context) -> Result:
    sync = Sync(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        generation=request.generation_id,
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignments={assignment.member_id: assignment.assignment for assignment in request.assignments},
    )
    try:
        if context.version >= _NAMES_PROTOCOL and None in {sync.protocol_type, sync.protocol_name}:
            raise InconsistentProtocol("SyncGroup v5 requires a protocol type and a protocol name")
        shard = context.broker.groups.shard(sync.group_id)
        reply = shard.write_and_wait(lambda machine, waiter, now_ms: machine.sync(sync, waiter, now_ms))
    except FAILURES as error:
        return Result(_refused(error))
    return respond(
        reply,
        lambda synced: SyncGroupResponse(
            protocol_type=synced.protocol_type,
            protocol_name=synced.protocol_name,
            assignment=synced.assignment,
        ),
        _refused,
    )


def _refused(error: Failure) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error_code(error), assignment=b"")
