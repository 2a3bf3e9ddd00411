"""What a coordinator must still know after a crash, in a form that two coordinators can be compared in."""

from typing import Any

from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.kinds import Group

WRITTEN_STATES = (ClassicState.EMPTY, ClassicState.STABLE)


def written(coordinator: GroupCoordinator) -> dict[str, Any]:
    """Groups and offsets, without classic groups that are between two states that are written down."""
    groups = {
        group_id: written_group(group)
        for group_id, group in coordinator.groups.items()
        if not isinstance(group, ClassicGroup) or group.state in WRITTEN_STATES
    }
    offsets = {group_id: dict(coordinator.offsets.of(group_id)) for group_id in coordinator.groups}
    return {
        "groups": {group_id: group for group_id, group in groups.items() if group is not None},
        "offsets": {group_id: group for group_id, group in offsets.items() if group},
    }


def written_group(group: Group) -> Any:
    """One group; None for one that was never written down: it has nothing but offsets, or not even them."""
    if isinstance(group, ConsumerGroup):
        return (
            group.epoch,
            group.metadata_hash,
            group.target_epoch,
            dict(group.members),
            {member_id: target for member_id, target in group.target.items() if target},
            dict(group.instances),
            dict(group.resolved),
            dict(group.owners),
        )
    assert isinstance(group, ClassicGroup)
    if not group.generation and not group.members:
        return None
    return (
        group.state,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        group.state_timestamp_ms,
        group.subscribed,
        dict(group.instances),
        [
            (
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout_ms,
                member.rebalance_timeout_ms,
                member.metadata(group.protocol_name),
                member.assignment,
            )
            for member in group.members.values()
        ],
    )
