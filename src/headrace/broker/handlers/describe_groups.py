"""DescribeGroups (key 15), v0-v6.

Behaviour: returns classic groups with their members; a group that does not exist or is a consumer group is
           Dead.
Versions:  v3 authorized operations; v4 static members; v5 flexible; v6 GROUP_ID_NOT_FOUND for Dead groups.
"""

from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import bounded_repeats
from headrace.broker.requests.requirements import on_groups
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from headrace.coordinators.group.errors import GroupIdNotFound
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_groups as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import NOT_REQUESTED, Operation, ResourceType

_GROUP_ID_NOT_FOUND_SINCE = 6
_DESCRIBE: Final = on_groups(Operation.DESCRIBE)


@handles(ApiKey.DESCRIBE_GROUPS, range(7), requires=_DESCRIBE)
def describe_groups(
    request: api.DescribeGroupsRequest, context: Context
) -> Steps[api.DescribeGroupsResponse]:
    describe = partial(_describe, requested=request.include_authorized_operations, context=context)
    group_ids = yield from bounded_repeats(request.groups)
    groups = yield from each(describe, group_ids, step=1)  # the hash of a long group id takes 3 ms
    return api.DescribeGroupsResponse(groups=groups)


def _describe(group_id: str, requested: bool, context: Context) -> api.DescribedGroup:
    operations = context.authorized_operations(ResourceType.GROUP, group_id, requested=requested)
    try:
        context.require(_DESCRIBE, group_id)
        group = context.broker.groups.shard(group_id).machine.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"classic group {group_id!r} does not exist")
    except FAILURES as error:
        code = error_code(error)
        dead = code == ErrorCode.GROUP_ID_NOT_FOUND
        if dead and context.version < _GROUP_ID_NOT_FOUND_SINCE:
            code = ErrorCode.NONE
        return api.DescribedGroup(
            error_code=code,
            error_message=error_message(error),
            group_id=group_id,
            group_state="Dead" if dead else "",
            protocol_type="",
            protocol_data="",
            members=[],
            authorized_operations=NOT_REQUESTED if code else operations,
        )
    stable = group.state is ClassicState.STABLE
    return api.DescribedGroup(
        group_id=group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[
            api.DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol_name) if stable else b"",
                member_assignment=member.assignment,  # during a rebalance, the previous one
            )
            for member in group.members.values()
        ],
        authorized_operations=operations,
    )
