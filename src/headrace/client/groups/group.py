"""Consumer groups: members, committed offsets and lag, and how responses describe them.

Pure: `coordinators` sends the requests.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Final

from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.consumer_protocol import decode_assignment
from headrace.protocol.errors import ProtocolError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import consumer_group_describe as consumer
from headrace.protocol.schema import describe_groups as classic
from headrace.protocol.schema.list_groups import ListedGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A line in the list of groups."""

    name: str
    state: str
    type: str
    members: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned:
    """The partitions of one topic that are assigned to a member."""

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
    """The progress of a group in one partition, and its member; None is unknown."""

    topic: str
    partition: int
    committed: int | None
    log_end: int | None
    lag: int | None
    member_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """A group as its coordinator describes it, without offsets; a group that does not exist is Dead."""

    name: str
    state: str
    type: str
    assignor: str | None
    coordinator: Coordinator
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group(Described):
    """A group, its members and its progress. Partitions without a committed offset have no lag."""

    idle_members: int
    partitions: tuple[Progress, ...]
    total_lag: int  # of the partitions whose lag is known

    @property
    def known_lag(self) -> int | None:
        """The lag of the whole group, or None if it is not known."""
        return lag_of(self.partitions)

    @property
    def uncommitted(self) -> int:
        """How many partitions have no committed offset, and so no part in the lag."""
        return sum(partition.committed is None for partition in self.partitions)


def summary(found: Described) -> GroupSummary:
    return GroupSummary(name=found.name, state=found.state, type=found.type, members=len(found.members))


def group(
    found: Described, committed: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int | None]
) -> Group:
    """Return the group with its offsets. Read `ends` after `committed`, or a lag could be negative."""
    owned_by = owners(found)
    partitions = []
    for partition in sorted({*committed, *owned_by}):
        offset, end = committed.get(partition), ends.get(partition)
        progress = Progress(
            topic=partition.topic,
            partition=partition.partition,
            committed=offset,
            log_end=end,
            lag=None if offset is None or end is None else end - offset,
            member_id=owned_by.get(partition),
        )
        partitions.append(progress)
    described_fields = {field.name: getattr(found, field.name) for field in fields(found)}
    return Group(
        **described_fields,
        idle_members=sum(not member.assignment for member in found.members),
        partitions=tuple(partitions),
        total_lag=sum(each.lag or 0 for each in partitions),
    )


def lag_of(partitions: Iterable[Progress]) -> int | None:
    """Return the lag of these partitions together.

    It is None if nothing is committed in them, or if the end of a partition with a committed offset is not
    known. A partition without a committed offset adds nothing.
    """
    committed = [partition for partition in partitions if partition.committed is not None]
    if not committed or any(each.lag is None for each in committed):
        return None
    return sum(each.lag or 0 for each in committed)


def owners(found: Described) -> dict[TopicPartition, str]:
    return {
        TopicPartition(each.topic, index): member.member_id
        for member in found.members
        for each in member.assignment
        for index in each.partitions
    }


DEAD: Final = "Dead"  # the state of a group that does not exist
STATES: Final = ("Empty", "Stable", "PreparingRebalance", "CompletingRebalance", "Reconciling")
TYPES: Final = ("classic", "consumer")


CLASSIC, CONSUMER = "classic", "consumer"
_OF_CONSUMERS: Final = {"consumer", ""}  # protocol types; empty while no member has joined
_STATES: Final = {"Assigning": "Reconciling"}  # both mean that the assignment is not complete


def is_of_consumers(found: ListedGroup) -> bool:
    """Whether it is a consumer group with a name, not one of Kafka Connect, or a share group.

    Kafka lets clients commit for a group without a name, which no request can describe.
    """
    return bool(found.group_id) and found.protocol_type in _OF_CONSUMERS


def state_of(state: str) -> str:
    """Return Kafka's name of a state; Assigning is shown as Reconciling."""
    return _STATES.get(state, state)


def described(
    name: str, state: str, kind: str, assignor: str | None, node: Node, *, members: Iterable[Member] = ()
) -> Described:
    """Return a group with its members in order."""
    return Described(
        name=name,
        state=state_of(state),
        type=kind,
        assignor=assignor or None,
        coordinator=Coordinator(id=node.id, host=node.host, port=node.port),
        members=tuple(sorted(members, key=lambda member: member.member_id)),
    )


def of_consumer_group(found: consumer.DescribedGroup, node: Node) -> Described:
    """Return a group of the consumer protocol, whose assignment is the coordinator's."""
    members = (
        _member(
            member,
            member.instance_id,
            ((of.topic_name, index) for of in member.assignment.topic_partitions for index in of.partitions),
        )
        for member in found.members
    )
    return described(found.group_id, found.group_state, CONSUMER, found.assignor_name, node, members=members)


def of_classic_group(found: classic.DescribedGroup, node: Node) -> Described:
    """Return a group of the classic protocol, whose assignment is the leader's, as opaque bytes."""
    members = (
        _member(each, each.group_instance_id, _decoded(each.member_assignment)) for each in found.members
    )
    return described(found.group_id, found.group_state, CLASSIC, found.protocol_data, node, members=members)


def _member(
    found: consumer.Member | classic.DescribedGroupMember,
    instance_id: str | None,
    assigned: Iterable[tuple[str, int]],
) -> Member:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(assigned):
        by_topic[topic].append(index)
    return Member(
        member_id=found.member_id,
        instance_id=instance_id or None,
        client_id=found.client_id,
        host=found.client_host.removeprefix("/"),  # Java prints an address without a name so
        assignment=tuple(
            Assigned(topic=topic, partitions=tuple(indexes)) for topic, indexes in by_topic.items()
        ),
    )


def _decoded(assignment: bytes) -> list[tuple[str, int]]:
    try:
        decoded = decode_assignment(assignment)
    except ProtocolError:  # nothing is assigned yet, or in a custom format
        return []
    return [(of.topic, index) for of in decoded.assigned_partitions for index in of.partitions]
