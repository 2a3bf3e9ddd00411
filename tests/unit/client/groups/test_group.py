"""Groups as we describe them, from what their coordinators say."""

from collections.abc import Sequence

import pytest

from headrace.client.groups.group import (
    Assigned,
    Described,
    Group,
    GroupSummary,
    Member,
    Progress,
    group,
    is_of_consumers,
    of_classic_group,
    of_consumer_group,
    state_of,
    summary,
)
from headrace.client.wire.requests import Coordinator, Node
from headrace.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_assignment
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import consumer_group_describe as consumer
from headrace.protocol.schema import describe_groups as classic
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition as AssignedTopic
from headrace.protocol.schema.list_groups import ListedGroup

A0, A1, B7 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 7)
NODE = Node(3, "h", 9092)


def test_a_group_with_members_offsets_and_lag() -> None:
    found = described([member("m-2", [B7, A0]), member("m-1", [])], assignor="range")
    assert group(found, committed={A0: 5, A1: 9}, ends={A0: 8, A1: 9, B7: 4}) == Group(
        name="g",
        state="Stable",
        type="classic",
        assignor="range",
        coordinator=Coordinator(id=3, host="h", port=9092),
        members=(
            Member(member_id="m-1", instance_id=None, client_id="c", host="127.0.0.1", assignment=()),
            Member(
                member_id="m-2",
                instance_id=None,
                client_id="c",
                host="127.0.0.1",
                assignment=(Assigned(topic="a", partitions=(0,)), Assigned(topic="b", partitions=(7,))),
            ),
        ),
        idle_members=1,
        partitions=(
            Progress(topic="a", partition=0, committed=5, log_end=8, lag=3, member_id="m-2"),
            Progress(topic="a", partition=1, committed=9, log_end=9, lag=0, member_id=None),
            Progress(topic="b", partition=7, committed=None, log_end=4, lag=None, member_id="m-2"),
        ),
        total_lag=3,
    )


def test_a_topic_that_is_gone_has_an_offset_and_no_lag() -> None:
    (gone,) = group(described([]), committed={A0: 5}, ends={A0: None}).partitions
    assert (gone.committed, gone.log_end, gone.lag) == (5, None, None)


def test_a_leader_that_does_not_answer_leaves_a_partition_without_lag() -> None:
    known, unknown = group(described([]), committed={A0: 5, A1: 6}, ends={A0: 9}).partitions
    assert (known.lag, unknown.committed, unknown.lag) == (4, 6, None)


def test_a_group_of_the_new_protocol_is_described_by_its_broker() -> None:
    topics = [consumer.TopicPartitions(topic_id=bytes(16), topic_name="a", partitions=[1, 0])]
    found = of_consumer_group(
        consumer.DescribedGroup(
            group_id="new",
            group_state="Assigning",
            group_epoch=4,
            assignment_epoch=3,
            assignor_name="uniform",
            members=[
                consumer.Member(
                    member_id="m",
                    instance_id="i",
                    member_epoch=3,
                    client_id="c",
                    client_host="/::1",
                    subscribed_topic_names=["a"],
                    assignment=consumer.Assignment(topic_partitions=topics),
                    target_assignment=consumer.Assignment(topic_partitions=[]),
                )
            ],
        ),
        NODE,
    )
    assert summary(found) == GroupSummary(name="new", state="Reconciling", type="consumer", members=1)
    assert (found.assignor, found.coordinator.id) == ("uniform", 3)
    (only,) = found.members
    assert (only.instance_id, only.host) == ("i", "::1")
    assert only.assignment == (Assigned(topic="a", partitions=(0, 1)),)


@pytest.mark.parametrize("assignment", [b"", b"\xff\xff", b"whatever Connect says"])
def test_an_assignment_that_nobody_can_read_is_none(assignment: bytes) -> None:
    found = described([classic_member("m", assignment)])
    assert [each.assignment for each in found.members] == [()]


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [
        ("g", "consumer", True),
        ("g", "", True),
        ("", "consumer", False),
        ("c", "connect", False),
        ("s", "share", False),
    ],
)
def test_only_groups_of_consumers_that_have_a_name_are_shown(name: str, kind: str, shown: bool) -> None:
    assert is_of_consumers(ListedGroup(group_id=name, protocol_type=kind)) is shown


def test_states_have_kafkas_names() -> None:
    assert [state_of(each) for each in ("PreparingRebalance", "Empty", "Assigning", "Reconciling")] == [
        "PreparingRebalance",
        "Empty",
        "Reconciling",
        "Reconciling",
    ]


def member(member_id: str, places: Sequence[TopicPartition]) -> classic.DescribedGroupMember:
    told = [AssignedTopic(topic=place.topic, partitions=[place.partition]) for place in places]
    return classic_member(
        member_id, encode_assignment(ConsumerProtocolAssignment(assigned_partitions=told), 1)
    )


def classic_member(member_id: str, assignment: bytes) -> classic.DescribedGroupMember:
    return classic.DescribedGroupMember(
        member_id=member_id,
        client_id="c",
        client_host="/127.0.0.1",
        member_metadata=b"",
        member_assignment=assignment,
    )


def described(members: Sequence[classic.DescribedGroupMember], *, assignor: str = "") -> Described:
    return of_classic_group(
        classic.DescribedGroup(
            group_id="g",
            group_state="Stable",
            protocol_type="consumer",
            protocol_data=assignor,
            members=list(members),
        ),
        NODE,
    )
