"""What a consumer group is to those who look at it: its members, how far it is, what is left to read.

Pure: `group_admin` asks the cluster, and `group_descriptions` reads what brokers answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headrace.protocol.ids import TopicPartition


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A group as its coordinator describes it, without offsets; one that is not there is Dead."""

    name: str
    state: str
    type: str
    assignor: str | None
    coordinator: Coordinator
    members: tuple[Member, ...]


def summary(found: Described) -> GroupSummary:
    """The line about a group."""
    return GroupSummary(name=found.name, state=found.state, type=found.type, members=len(found.members))


def group(
    found: Described, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int | None]
) -> Group:
    """The group with its offsets. Ends are asked for last, or a lag could be below zero."""
    partitions = _progress(committed, ends, owners(found))
    members = tuple(sorted(found.members, key=lambda member: member.member_id))
    return Group(
        name=found.name,
        state=found.state,
        type=found.type,
        assignor=found.assignor,
        coordinator=found.coordinator,
        members=members,
        idle_members=sum(not member.assignment for member in members),
        partitions=partitions,
        total_lag=sum(each.lag or 0 for each in partitions),
    )


def owners(found: Described) -> dict[TopicPartition, str]:
    """Which member has each partition."""
    return {
        TopicPartition(each.topic, index): member.member_id
        for member in found.members
        for each in member.assignment
        for index in each.partitions
    }


def _progress(
    committed: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int | None],
    owned_by: Mapping[TopicPartition, str],
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


DEAD: Final = "Dead"  # the state of a group that is not there
STATES: Final = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Reconciling")
TYPES: Final = ("classic", "consumer")
