"""Groups as we describe them, from what librdkafka says."""

from collections.abc import Sequence

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, Node, TopicPartition
from confluent_kafka.admin import ConsumerGroupDescription, MemberAssignment, MemberDescription

from headrace.client.connection import Place
from headrace.client.groups import (
    Assigned,
    Coordinator,
    Group,
    GroupSummary,
    Member,
    Progress,
    group,
    summary,
)

A0, A1, B7 = Place("a", 0), Place("a", 1), Place("b", 7)


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


@pytest.mark.parametrize(
    ("state", "kind", "word"),
    [
        (ConsumerGroupState.PREPARING_REBALANCING, ConsumerGroupType.CLASSIC, "PreparingRebalance"),
        (ConsumerGroupState.COMPLETING_REBALANCING, ConsumerGroupType.CLASSIC, "CompletingRebalance"),
        (ConsumerGroupState.EMPTY, ConsumerGroupType.CONSUMER, "Empty"),
        (ConsumerGroupState.UNKNOWN, ConsumerGroupType.CONSUMER, "Reconciling"),
        (ConsumerGroupState.UNKNOWN, ConsumerGroupType.CLASSIC, "Unknown"),
    ],
)
def test_states_have_kafkas_names(state: ConsumerGroupState, kind: ConsumerGroupType, word: str) -> None:
    found = described([member("m", [])], state=state, kind=kind)
    assert summary(found) == GroupSummary(
        name="g", state=word, type="classic" if kind is ConsumerGroupType.CLASSIC else "consumer", members=1
    )


def member(member_id: str, places: Sequence[Place]) -> MemberDescription:
    assignment = MemberAssignment([TopicPartition(*place) for place in places])
    return MemberDescription(member_id, "c", "/127.0.0.1", assignment)


def described(
    members: Sequence[MemberDescription],
    *,
    assignor: str = "",
    state: ConsumerGroupState = ConsumerGroupState.STABLE,
    kind: ConsumerGroupType = ConsumerGroupType.CLASSIC,
) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        "g",
        False,
        list(members),
        assignor,
        state,
        Node(3, "h", 9092),
        type=kind,
    )
