"""JoinGroup (key 11), v0-v9.

Behaviour: the response is sent when the group's next generation begins. A new member first gets
           MEMBER_ID_REQUIRED and rejoins with the member id of that response. A static member (with an
           instance id) that rejoins a stable group gets its assignment without a rebalance.
Versions:  v1 rebalance timeout; v4 MEMBER_ID_REQUIRED; v5 static members; v6 flexible; v7 protocol type; v8
           reason; v9 skip_assignment for a leader.
"""

from functools import partial
from typing import Final

from headrace.broker.coordinators.replies import respond
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group
from headrace.broker.results import Result
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.coordinators.group.decision import Client, Join, Joined
from headrace.coordinators.group.errors import GroupError, InconsistentProtocol
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from headrace.security.authorization import ALLOW_ALL, Operation, Permission, ResourceType

MAX_PROTOCOLS: Final = 1000  # of a member, which the coordinator keeps; consumers have one or two
_HAS_REBALANCE_TIMEOUT, _REQUIRES_MEMBER_ID, _NULL_PROTOCOL, _SKIPS_ASSIGNMENT = 1, 4, 7, 9
_DESCRIBE_TOPIC: Final = Permission(Operation.DESCRIBE, ResourceType.TOPIC)


@handles(ApiKey.JOIN_GROUP, range(10), requires=on_group(Operation.READ))
def join_group(request: JoinGroupRequest, context: Context) -> Result:
    if len(request.protocols) > MAX_PROTOCOLS:
        refused = InconsistentProtocol(f"a member supports at most {MAX_PROTOCOLS} protocols")
        return Result(_refused(refused, request.member_id, context.version))
    join = Join(
        group_id=request.group_id,
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client=client_of(context),
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(0, request.rebalance_timeout_ms)
        if context.version >= _HAS_REBALANCE_TIMEOUT
        else request.session_timeout_ms,
        protocol_type=request.protocol_type,
        protocols=list({protocol.name: protocol.metadata for protocol in request.protocols}.items()),
        requires_known_member_id=context.version >= _REQUIRES_MEMBER_ID,
        supports_skipping_assignment=context.version >= _SKIPS_ASSIGNMENT,
    )
    try:
        shard = context.broker.groups.shard(join.group_id)
        reply = shard.write_and_wait(lambda machine, waiter, now_ms: machine.join(join, waiter, now_ms))
    except FAILURES as error:
        return Result(_refused(error, join.member_id, context.version))
    return respond(reply, _joined, lambda error: _refused(error, join.member_id, context.version))


def _joined(answer: Joined) -> JoinGroupResponse:
    return JoinGroupResponse(
        generation_id=answer.generation,
        protocol_type=answer.protocol_type,
        protocol_name=answer.protocol_name,
        leader=answer.leader,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in answer.members
        ],
    )


def _refused(error: Failure, member_id: str, version: int) -> JoinGroupResponse:
    if isinstance(error, GroupError) and error.member_id is not None:
        member_id = error.member_id
    return JoinGroupResponse(
        error_code=error_code(error),
        protocol_name=None if version >= _NULL_PROTOCOL else "",
        leader="",
        member_id=member_id,
        members=[],
    )


def client_of(context: Context) -> Client:
    """Return client id and host as Kafka stores them in a group's records."""
    if context.authorizer is ALLOW_ALL:
        return Client(context.client_id or "", f"/{context.address}")
    return Client(context.client_id or "", f"/{context.address}", partial(context.may, _DESCRIBE_TOPIC))
