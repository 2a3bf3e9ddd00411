"""Static members of a consumer group: away for a while, and back as somebody else."""

import pytest

from headrace.coordinators.group.consumer_protocol import HeartbeatResult
from headrace.coordinators.group.errors import (
    FencedInstance,
    FencedMemberEpoch,
    UnknownMember,
    UnreleasedInstance,
)
from support.groups import GroupDesk, beat_request
from unit.coordinators.group.stories import consumers, desk, numbers, settle_consumers


def two(at: GroupDesk) -> dict[str, set[int]]:
    """A settled group of a static member, `a`, and a dynamic one, `b`."""
    at.beat(beat_request("a", 0, instance_id="i1"))
    at.beat(beat_request("b", 0))
    return settle_consumers(at, "a", "b")


def test_a_static_member_that_is_back_gets_its_place_and_nobody_else_notices() -> None:
    at = desk()
    had = two(at)
    epoch = consumers(at).epoch

    assert at.beat(beat_request("a", -2, instance_id="i1")) == HeartbeatResult("a", -2, 0)
    assert at.beat(beat_request("b", epoch)).assignment is None
    back = at.beat(beat_request("a2", 0, instance_id="i1"))

    assert back.epoch == consumers(at).epoch == epoch
    assert numbers(at, back.assignment) == had["a"]
    assert consumers(at).instances == {"i1": "a2"}
    assert consumers(at).members.keys() == {"a2", "b"}


def test_it_may_come_back_under_the_same_id() -> None:
    at = desk()
    had = two(at)
    at.beat(beat_request("a", -2, instance_id="i1"))

    assert numbers(at, at.beat(beat_request("a", 0, instance_id="i1")).assignment) == had["a"]


def test_its_place_is_kept_over_a_crash() -> None:
    at = desk()
    had = two(at)
    at.beat(beat_request("a", -2, instance_id="i1"))

    at.crash()

    assert numbers(at, at.beat(beat_request("a2", 0, instance_id="i1")).assignment) == had["a"]


def test_its_place_is_kept_for_no_longer_than_a_session() -> None:
    at = desk()
    two(at)
    at.beat(beat_request("a", -2, instance_id="i1"))
    at.pass_time(44_999)
    at.beat(beat_request("b", consumers(at).epoch))
    assert "a" in consumers(at).members
    at.pass_time(1)

    assert consumers(at).instances == {}
    assert settle_consumers(at, "b") == {"b": {0, 1, 2}}


def test_one_who_is_back_has_a_session_of_its_own() -> None:
    at = desk()
    at.beat(beat_request("a", 0, instance_id="i1"))
    at.pass_time(44_000)
    at.beat(beat_request("a", -2, instance_id="i1"))
    at.beat(beat_request("a2", 0, instance_id="i1"))

    at.pass_time(44_999)
    assert "a2" in consumers(at).members
    at.pass_time(1)
    assert consumers(at).members == {}


def test_an_instance_that_was_not_released_cannot_be_taken() -> None:
    at = desk()
    two(at)
    written = len(at.log)

    with pytest.raises(UnreleasedInstance):
        at.beat(beat_request("a2", 0, instance_id="i1"))

    assert len(at.log) == written


def test_whose_answer_got_lost_joins_again() -> None:
    at = desk()
    once = at.beat(beat_request("a", 0, instance_id="i1"))

    assert at.beat(beat_request("a", 0, instance_id="i1")) == once


def test_a_former_self_is_fenced() -> None:
    at = desk()
    two(at)
    epoch = consumers(at).epoch
    at.beat(beat_request("a", -2, instance_id="i1"))
    at.beat(beat_request("a2", 0, instance_id="i1"))

    for stays in (epoch, -1, -2):
        with pytest.raises(FencedInstance):
            at.beat(beat_request("a", stays, instance_id="i1"))
    with pytest.raises(UnknownMember):
        at.beat(beat_request("a2", epoch, instance_id="i9"))


@pytest.mark.parametrize("behind", [0, 1])
def test_who_is_away_cannot_heartbeat_from_before(behind: int) -> None:
    at = desk()
    two(at)
    member = consumers(at).members["a"]
    at.beat(beat_request("a", -2, instance_id="i1"))
    epochs = [member.epoch, member.previous_epoch]

    with pytest.raises(FencedMemberEpoch):
        at.beat(beat_request("a", epochs[behind], instance_id="i1", owned={}))


def test_a_static_member_can_leave_for_good() -> None:
    at = desk()
    two(at)

    at.beat(beat_request("a", -1, instance_id="i1"))

    assert consumers(at).instances == {}
    assert list(consumers(at).members) == ["b"]


def test_another_subscription_of_one_who_is_back_makes_a_new_target() -> None:
    at = desk().set_topics(orders=3, people=1)
    two(at)
    at.beat(beat_request("a", -2, instance_id="i1"))

    back = at.beat(beat_request("a2", 0, instance_id="i1", topics=frozenset({"people"})))

    assert back.epoch == consumers(at).epoch
    assert numbers(at, back.assignment, "people") == {0}
    assert settle_consumers(at, "a2", "b")["b"] == {0, 1, 2}


def test_who_leaves_while_it_has_to_give_something_up_has_given_it_up() -> None:
    at = desk()
    at.beat(beat_request("a", 0, instance_id="i1"))
    at.beat(beat_request("b", 0))
    at.beat(beat_request("a", 2, instance_id="i1"))

    at.beat(beat_request("a", -2, instance_id="i1"))

    given = at.beat(beat_request("b", 3)).assignment
    assert len(numbers(at, given)) == 1
    assert numbers(at, given).isdisjoint(numbers(at, consumers(at).members["a"].assigned))
