"""ListGroups (key 16), v0-v5.

Behaviour: returns the groups whose coordinator is this broker; clients send the request to every broker.
Versions:  v3 flexible; v4 filter by state; v5 filter by type.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.requirements import on_cluster
from headrace.broker.slices import Steps, each
from headrace.coordinator.errors import CoordinatorError
from headrace.group.classic import ClassicGroup
from headrace.group.coordinator import Group
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from headrace.security.authorization import Operation


@handles(ApiKey.LIST_GROUPS, range(6), requires=on_cluster(Operation.DESCRIBE))
def list_groups(request: ListGroupsRequest, context: Context) -> Steps[ListGroupsResponse]:
    runtime = context.broker.groups.runtime
    try:
        runtime.ensure_all_ready()
    except CoordinatorError as error:
        return ListGroupsResponse(error_code=error.code, groups=[])
    states = {state.strip().lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = []
    for shard in runtime.shards:
        listed += yield from each(_listed, list(shard.machine.groups.values()))
    return ListGroupsResponse(
        groups=[
            group
            for group in listed
            if (not states or group.group_state.lower() in states)
            and (not types or group.group_type.lower() in types)
        ]
    )


def _listed(group: Group) -> ListedGroup:
    if isinstance(group, ClassicGroup):
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type="classic",
        )
    return ListedGroup(
        group_id=group.group_id, protocol_type="consumer", group_state=group.state, group_type="consumer"
    )
