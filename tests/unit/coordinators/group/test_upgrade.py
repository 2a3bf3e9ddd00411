"""A classic group becomes a consumer group when a consumer joins it."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.errors import GroupIdNotFound, RebalanceInProgress
from headrace.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_assignment
from support.groups import GroupDesk, beat_request, commit_request, compacted, join_request, sync_request
from unit.coordinators.group.stories import (
    assigning,
    classic,
    classic_group,
    completing_group,
    consumers,
    desk,
    numbers,
    settle_consumers,
)


def test_a_consumer_makes_a_classic_group_its_own_and_members_keep_what_they_have() -> None:
    at = desk()
    first, second = classic_group(at, (0, 1), (2,))

    answer = at.beat(beat_request("a", 0))

    group = consumers(at)
    assert (answer.epoch, answer.assignment) == (3, {})
    assert {each.epoch for each in (group.members[first], group.members[second])} == {2}
    assert numbers(at, group.members[first].assigned) == {0, 1}
    assert numbers(at, group.members[second].assigned) == {2}
    assert len(group.classic_members()) == 2


def test_classic_members_are_told_to_join_again_by_their_heartbeats_and_then_share() -> None:
    at = desk()
    first, second = classic_group(at, (0, 1), (2,))
    epoch = at.beat(beat_request("a", 0)).epoch

    for member_id in (first, second):
        with pytest.raises(RebalanceInProgress):
            at.heartbeat(member_id, 2)
        at.join(join_request(member_id))
        at.sync(sync_request(member_id, epoch))
    given = numbers(at, at.beat(beat_request("a", epoch)).assignment)

    assert len(given) == 1
    assert consumers(at).state_name == "Stable"


def test_their_sessions_go_on() -> None:
    at = desk()
    classic_group(at, (0, 1, 2))
    at.beat(beat_request("a", 0))

    at.pass_time(10_000)

    assert list(consumers(at).members) == ["a"]
    assert settle_consumers(at, "a") == {"a": {0, 1, 2}}


def test_whoever_waits_is_told_to_join_again() -> None:
    at = desk()
    first, second = classic_group(at, (0, 1), (2,))
    waiting = at.join(join_request(first))

    at.beat(beat_request("a", 0))

    assert isinstance(waiting.answer, RebalanceInProgress)
    assert consumers(at).members.keys() == {first, second, "a"}


def test_whoever_waits_for_an_assignment_is_told_to_join_again() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    waiting = at.sync(sync_request(second, 2))

    at.beat(beat_request("a", 0))

    assert isinstance(waiting.answer, RebalanceInProgress)
    assert consumers(at).members[first].assigned == {}


def test_a_cooperative_member_keeps_what_it_had_before_a_generation_that_came_to_nothing() -> None:
    """It may still be reading it, and has not been asked to stop."""
    at = desk()
    (first,) = classic_group(at, (0, 1, 2))
    at.join(join_request())
    at.join(join_request(first))
    at.join(join_request())
    assert classic(at).state is ClassicState.PREPARING

    answer = at.beat(beat_request("a", 0))

    assert answer.assignment == {}
    assert numbers(at, consumers(at).members[first].assigned) == {0, 1, 2}


@pytest.mark.parametrize("topics", [{"orders": 3}, {}], ids=["a topic", "none"])
def test_a_group_that_had_not_begun_begins_at_an_epoch_that_can_be_told(topics: dict[str, int]) -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000).set_topics(**topics)
    at.join(join_request(instance_id="i1"))

    answer = at.beat(beat_request("a", 0, instance_id="i1"))

    assert answer.epoch > 0
    assert sum(map(len, (answer.assignment or {}).values())) == sum(topics.values())


def test_what_nobody_was_assigned_is_assigned_even_if_no_subscription_changes() -> None:
    at = desk()
    member_id = at.join(join_request(instance_id="i1")).answer.member_id
    at.sync(sync_request(member_id, 1, {member_id: assigning(0, 1)}, instance_id="i1"))

    answer = at.beat(beat_request("a", 0, instance_id="i1"))

    assert numbers(at, answer.assignment) == {0, 1, 2}


def test_a_consumer_takes_the_place_of_a_static_member_without_a_new_epoch() -> None:
    at = desk()
    member_id = at.join(join_request(instance_id="i1")).answer.member_id
    at.sync(sync_request(member_id, 1, {member_id: assigning(0, 1, 2)}, instance_id="i1"))

    answer = at.beat(beat_request("a", 0, instance_id="i1"))

    assert (answer.epoch, numbers(at, answer.assignment)) == (1, {0, 1, 2})
    assert list(consumers(at).members) == ["a"]


def test_offsets_stay() -> None:
    at = desk()
    (first,) = classic_group(at, (0, 1, 2))
    at.commit(commit_request([("orders", 0, 5)], first, 1))

    at.beat(beat_request("a", 0))

    assert at.coordinator.offsets.get("g", "orders", 0) is not None


def test_an_upgraded_group_is_read_from_its_log() -> None:
    at = desk()
    first, _ = classic_group(at, (0, 1), (2,))
    at.commit(commit_request([("orders", 0, 5)], first, 2))
    at.beat(beat_request("a", 0))
    before = dict(consumers(at).members)

    at.log = compacted(at.log)
    at.crash()

    assert consumers(at).members == before
    assert at.coordinator.offsets.get("g", "orders", 0) is not None


def test_topics_that_are_gone_are_not_taken_along() -> None:
    at = desk()
    (first,) = classic_group(at, (0, 1, 2))
    at.set_topics(people=1)

    at.beat(beat_request("a", 0, topics=frozenset({"people"})))

    assert consumers(at).members[first].assigned == {}


@pytest.mark.parametrize("holds", ["nothing", "offsets", "a generation"])
def test_a_classic_group_without_members_gives_way(holds: str) -> None:
    at = desk()
    if holds == "offsets":
        at.commit(commit_request([("orders", 0, 5)]))
    elif holds == "a generation":
        (member_id,) = classic_group(at, (0,))
        at.leave((member_id, None))

    assert at.beat(beat_request("a", 0)).epoch == 2
    at.crash()

    assert isinstance(at.coordinator.groups["g"], ConsumerGroup)
    assert len(at.coordinator.offsets.of("g")) == (holds == "offsets")


@pytest.mark.parametrize(
    ("limits", "some", "assignment"),
    [
        ({"may_upgrade": False}, {}, b""),
        ({"consumer_max_size": 1}, {}, b""),
        ({}, {"protocol_type": "connect"}, b""),
        ({}, {"protocols": (("range", b"no subscription"),)}, b""),
        ({}, {}, b"\x00"),
    ],
    ids=["not allowed", "too large", "no consumers", "unreadable subscription", "unreadable assignment"],
)
def test_a_group_that_cannot_be_upgraded_stays_as_it_is(
    limits: dict[str, Any], some: dict[str, Any], assignment: bytes
) -> None:
    at = desk(**limits)
    first, second = completing_group(at, 2, **some)
    waiting = at.sync(sync_request(second, 2))
    at.sync(sync_request(first, 2, {first: assignment}))
    written = len(at.log)

    with pytest.raises(GroupIdNotFound):
        at.beat(beat_request("a", 0))

    assert waiting.is_answered
    assert len(at.log) == written
    at.heartbeat(first, 2)


def test_what_an_assignor_tells_its_members_keeps_a_group_classic() -> None:
    at = desk()
    (first,) = completing_group(at)
    told = ConsumerProtocolAssignment(assigned_partitions=[], user_data=b"more to know")
    at.sync(sync_request(first, 1, {first: encode_assignment(told, 1)}))

    with pytest.raises(GroupIdNotFound):
        at.beat(beat_request("a", 0))

    at.heartbeat(first, 1)
