"""ListGroups (key 16), v0-v5.

Behaviour: returns the groups whose coordinator is this broker; clients send the request to every broker.
           Groups that the principal may not describe are left out.
Versions:  v3 flexible; v4 filter by state; v5 filter by type.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_groups
from headrace.broker.slices import STEP, Steps, keyed
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.kinds import Group
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from headrace.security.authorization import Operation, Permission, ResourceType

_DESCRIBE: Final = on_groups(Operation.DESCRIBE)
_DESCRIBE_CLUSTER: Final = Permission(Operation.DESCRIBE, ResourceType.CLUSTER)


@handles(ApiKey.LIST_GROUPS, range(6), requires=(_DESCRIBE, _DESCRIBE_CLUSTER))
def list_groups(request: ListGroupsRequest, context: Context) -> Steps[ListGroupsResponse]:
    runtime = context.broker.groups
    try:
        runtime.ensure_all_ready()
    except CoordinatorError as error:
        return ListGroupsResponse(error_code=error.code, groups=[])
    states = yield from keyed(lambda state: state.strip().lower(), request.states_filter)
    types = yield from keyed(str.lower, request.types_filter)
    sees_all = context.may(_DESCRIBE_CLUSTER)

    def matches(group: Group) -> bool:
        return (
            (sees_all or context.may(_DESCRIBE, group.group_id))
            and (not states or group.state_name.lower() in states)
            and (not types or group.type_name in types)
        )

    listed: list[ListedGroup] = []
    for shard in runtime.shards:
        groups = list(shard.machine.groups.values())
        for first in range(0, len(groups), STEP):
            yield
            listed += [
                ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state_name,
                    group_type=group.type_name,
                )
                for group in groups[first : first + STEP]
                if matches(group)
            ]
    return ListGroupsResponse(groups=listed)
