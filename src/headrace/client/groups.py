"""What a consumer group is to those who look at it: its members, how far it is, what is left to read.

From librdkafka's descriptions to ours. Pure: `group_admin` asks the cluster.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, ConsumerGroupType

from headrace.client.connection import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A line in the list of groups."""

    name: str
    state: str
    type: str
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The partitions of one topic that a member has."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A consumer in a group; one without an assignment is idle."""

    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[Assigned, ...]

    @property
    def partitions(self) -> int:
        return sum(len(each.partitions) for each in self.assignment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a group is in one partition, and whose it is; None is what nobody knows."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    lag: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coordinator:
    """The broker that keeps a group."""

    id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group, its members, and how far it is. Partitions without a committed offset have no lag."""

    name: str
    state: str
    type: str
    assignor: str | None
    coordinator: Coordinator
    members: tuple[Member, ...]
    idle_members: int
    partitions: tuple[Progress, ...]
    total_lag: int


def summary(found: Any) -> GroupSummary:
    """The line about a group that librdkafka has described."""
    return GroupSummary(
        name=found.group_id, state=state_of(found), type=type_of(found), members=len(found.members)
    )


def group(found: Any, committed: Mapping[Place, int], ends: Mapping[Place, int | None]) -> Group:
    """The group that librdkafka has described. Ends are asked for last, or a lag could be below zero."""
    partitions = _progress(committed, ends, owners(found))
    members = tuple(sorted(map(_member, found.members), key=lambda member: member.member_id))
    return Group(
        name=found.group_id,
        state=state_of(found),
        type=type_of(found),
        assignor=found.partition_assignor or None,
        coordinator=Coordinator(
            id=found.coordinator.id, host=found.coordinator.host, port=found.coordinator.port
        ),
        members=members,
        idle_members=sum(not member.assignment for member in members),
        partitions=partitions,
        total_lag=sum(each.lag or 0 for each in partitions),
    )


def _member(found: Any) -> Member:
    by_topic: dict[str, list[int]] = {}
    for each in sorted(_places_of(found)):
        by_topic.setdefault(each.topic, []).append(each.partition)
    return Member(
        member_id=found.member_id,
        instance_id=found.group_instance_id or None,
        client_id=found.client_id,
        host=found.host.removeprefix("/"),  # as Java prints an address without a name
        assignment=tuple(
            Assigned(topic=topic, partitions=tuple(partitions)) for topic, partitions in by_topic.items()
        ),
    )


def _places_of(member: Any) -> list[Place]:
    return [Place(each.topic, each.partition) for each in member.assignment.topic_partitions]


def owners(found: Any) -> dict[Place, str]:
    """Which member has each partition."""
    return {place: member.member_id for member in found.members for place in _places_of(member)}


def _progress(
    committed: Mapping[Place, int], ends: Mapping[Place, int | None], owned_by: Mapping[Place, str]
) -> tuple[Progress, ...]:
    rows = []
    for place in sorted({*committed, *owned_by}):
        offset, end = committed.get(place), ends.get(place)
        rows.append(
            Progress(
                topic=place.topic,
                partition=place.partition,
                committed=offset,
                log_end=end,
                lag=None if offset is None or end is None else end - offset,
                member_id=owned_by.get(place),
            )
        )
    return tuple(rows)


def state_of(found: Any) -> str:
    """Kafka's word. What librdkafka has no word for are the states of a consumer group that rebalances."""
    if found.state is ConsumerGroupState.UNKNOWN and found.type is ConsumerGroupType.CONSUMER:
        return "Reconciling"
    return _STATES.get(found.state, "Unknown")


def type_of(found: Any) -> str:
    """Which protocol its members speak."""
    return _TYPES.get(found.type, "unknown")


_STATES: Final = {
    ConsumerGroupState.EMPTY: "Empty",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.DEAD: "Dead",
}
_TYPES: Final = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}
STATES: Final = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Reconciling")
TYPES: Final = tuple(_TYPES.values())
