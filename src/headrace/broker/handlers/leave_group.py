"""LeaveGroup (key 13), v0-v5.

Behaviour: removes members immediately, and the others rebalance. A static member can be removed by its
           instance id alone.
Versions:  v3 several members, static ones among them; v4 flexible; v5 reasons.
"""

import asyncio
from collections.abc import Sequence

from headrace.broker.coordinators.replies import respond
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group
from headrace.broker.results import Result
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.coordinators.group.decision import Leaving
from headrace.coordinators.group.errors import GroupError
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from headrace.security.authorization import Operation

_SEVERAL_MEMBERS = 3
_TOGETHER = 500  # members that leave at a time: a request may name very many that do not exist


@handles(ApiKey.LEAVE_GROUP, range(6), requires=on_group(Operation.READ))
def leave_group(request: LeaveGroupRequest, context: Context) -> Result:
    if len(request.members) > _TOGETHER:
        return Result(later=_leave_in_parts(request, context))
    leaving = [Leaving(request.member_id, None)]
    if context.version >= _SEVERAL_MEMBERS:
        leaving = [Leaving(member.member_id, member.group_instance_id) for member in request.members]
    try:
        reply = context.broker.groups.shard(request.group_id).write(
            lambda machine, now_ms: machine.leave(request.group_id, leaving, now_ms)
        )
    except FAILURES as error:
        return Result(_refused(error))
    return respond(reply, lambda results: _left(leaving, results, context.version), _refused)


async def _leave_in_parts(request: LeaveGroupRequest, context: Context) -> LeaveGroupResponse:
    members: list[MemberResponse] = []
    for start in range(0, len(request.members), _TOGETHER):
        part = LeaveGroupRequest(
            group_id=request.group_id, members=request.members[start : start + _TOGETHER]
        )
        answer = await leave_group(part, context).response()
        if answer.error_code:
            return LeaveGroupResponse(error_code=answer.error_code)
        members += answer.members
        await asyncio.sleep(0)
    return LeaveGroupResponse(members=members)


def _left(
    leaving: Sequence[Leaving], results: Sequence[GroupError | None], version: int
) -> LeaveGroupResponse:
    codes = [0 if error is None else error_code(error) for error in results]
    if version < _SEVERAL_MEMBERS:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=each.member_id, group_instance_id=each.instance_id, error_code=code)
            for each, code in zip(leaving, codes, strict=True)
        ]
    )


def _refused(error: Failure) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error_code(error))
