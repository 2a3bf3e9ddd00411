"""How members of a consumer group join, move to their target, lose answers, and go."""

import pytest

from headrace.coordinators.errors import InvalidRegularExpression
from headrace.coordinators.group.consumer import MemberState
from headrace.coordinators.group.consumer_protocol import HeartbeatResult
from headrace.coordinators.group.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupIsFull,
    InvalidGroupRequest,
    UnknownMember,
    UnsupportedAssignor,
)
from support.groups import GroupDesk, beat_request
from unit.coordinators.group.stories import consumers, desk, numbers, settle_consumers


def owning(at: GroupDesk, *partitions: int) -> dict[bytes, frozenset[int]]:
    return {at.topic_id("orders"): frozenset(partitions)} if partitions else {}


# -- joining ---------------------------------------------------------------------------------------


def test_who_joins_is_given_everything_there_is() -> None:
    at = desk()

    answer = at.beat(beat_request("a", 0))

    assert answer == HeartbeatResult("a", 2, 5_000, owning(at, 0, 1, 2))
    assert (consumers(at).epoch, consumers(at).target_epoch) == (2, 2)
    assert consumers(at).state_name == "Stable"


def test_an_old_client_is_given_an_id() -> None:
    assert desk().beat(beat_request("", 0)).member_id == "id1"


def test_the_second_member_gets_its_share_when_the_first_has_given_it_up() -> None:
    at = desk()
    first_epoch = at.beat(beat_request("a", 0)).epoch

    joined = at.beat(beat_request("b", 0))
    assert (joined.epoch, joined.assignment) == (3, {})
    assert consumers(at).members["b"].state is MemberState.UNRELEASED

    told = at.beat(beat_request("a", first_epoch))
    assert told.epoch == first_epoch
    assert told.assignment is not None
    kept = numbers(at, told.assignment)
    assert len(kept) == 2
    assert at.beat(beat_request("b", joined.epoch)).assignment is None  # not yet

    assert at.beat(beat_request("a", first_epoch, owned=owning(at, *kept))).epoch == 3
    given = at.beat(beat_request("b", joined.epoch))
    assert given.assignment == owning(at, *({0, 1, 2} - kept))
    assert consumers(at).state_name == "Stable"


def test_a_member_that_says_nothing_of_what_it_owns_has_given_up_nothing() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))

    for _ in range(3):
        assert at.beat(beat_request("a", 2)).epoch == 2

    assert consumers(at).members["a"].state is MemberState.UNREVOKED


def test_more_members_than_partitions_leave_some_without() -> None:
    at = desk()
    members = ["a", "b", "c", "d", "e"]
    for member_id in members:
        at.beat(beat_request(member_id, 0))

    reads = settle_consumers(at, *members)

    assert sorted(map(len, reads.values())) == [0, 0, 1, 1, 1]
    assert set[int]().union(*reads.values()) == {0, 1, 2}


def test_a_heartbeat_that_changes_nothing_writes_nothing() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    written = len(at.log)

    assert at.beat(beat_request("a", 2)) == HeartbeatResult("a", 2, 5_000, None)

    assert len(at.log) == written


def test_who_tells_everything_is_told_everything() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    full = beat_request("a", 2, rebalance_timeout_ms=60_000, topics=frozenset({"orders"}), owned={})

    assert at.beat(full).assignment == owning(at, 0, 1, 2)


# -- lost answers ----------------------------------------------------------------------------------


def test_who_joins_again_because_the_answer_got_lost_is_the_same_member() -> None:
    at = desk()
    once = at.beat(beat_request("a", 0))

    assert at.beat(beat_request("a", 0)) == once
    assert consumers(at).epoch == 2


def test_a_member_that_missed_an_answer_may_be_one_epoch_behind() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    settle_consumers(at, "a", "b")
    before = consumers(at).members["b"]
    at.beat(beat_request("a", -1))
    at.beat(beat_request("b", before.epoch))
    now = consumers(at).members["b"]
    assert now.epoch > before.epoch

    answer = at.beat(
        beat_request(
            "b",
            before.epoch,
            rebalance_timeout_ms=60_000,
            topics=frozenset({"orders"}),
            owned=before.assigned,
        )
    )

    assert (answer.epoch, answer.assignment) == (now.epoch, now.assigned)


@pytest.mark.parametrize(
    ("behind", "owned", "what"),
    [
        (1, None, "does not say what it owns"),
        (1, (0, 1, 2), "owns more than it was given"),
        (2, (), "is two epochs behind"),
        (-1, (), "is ahead"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_member_at_another_epoch_is_fenced_if_it(
    behind: int, owned: tuple[int, ...] | None, what: str
) -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    settle_consumers(at, "a", "b")
    epoch = consumers(at).members["a"].epoch
    before = consumers(at).members["a"]
    written = len(at.log)

    with pytest.raises(FencedMemberEpoch):
        at.beat(beat_request("a", epoch - behind, owned=None if owned is None else owning(at, *owned)))

    assert consumers(at).members["a"] == before, what
    assert len(at.log) == written


def test_a_fenced_member_joins_again_with_nothing() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    with pytest.raises(FencedMemberEpoch):
        at.beat(beat_request("a", 9))

    assert at.beat(beat_request("a", 0)).assignment == owning(at, 0, 1, 2)


# -- going -----------------------------------------------------------------------------------------


def test_who_leaves_is_gone_at_once_and_the_others_get_the_rest() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    settle_consumers(at, "a", "b")

    assert at.beat(beat_request("a", -1)) == HeartbeatResult("a", -1, 0)

    assert list(consumers(at).members) == ["b"]
    assert consumers(at).state_name == "Assigning"
    assert settle_consumers(at, "b") == {"b": {0, 1, 2}}


def test_the_last_to_leave_leaves_an_empty_group_that_goes_on_from_its_epoch() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("a", -1))

    assert (consumers(at).state_name, consumers(at).epoch) == ("Empty", 3)
    assert at.beat(beat_request("b", 0)).epoch == 4


def test_a_silent_member_is_removed_when_its_session_is_over() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    at.pass_time(44_999)
    at.beat(beat_request("b", 3))
    at.pass_time(1)

    assert list(consumers(at).members) == ["b"]
    with pytest.raises(UnknownMember):
        at.beat(beat_request("a", 2))


def test_a_member_that_does_not_give_up_its_partitions_in_time_is_removed() -> None:
    at = desk()
    at.beat(beat_request("a", 0, rebalance_timeout_ms=100_000))
    at.beat(beat_request("b", 0))
    at.beat(beat_request("a", 2))
    for _ in range(9):
        at.pass_time(10_000)
        at.beat(beat_request("a", 2))
        at.beat(beat_request("b", 3))
    assert "a" in consumers(at).members
    at.pass_time(10_000)

    assert list(consumers(at).members) == ["b"]
    assert settle_consumers(at, "b") == {"b": {0, 1, 2}}


def test_a_member_that_gave_up_its_partitions_in_time_stays() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    at.beat(beat_request("a", 2))
    settle_consumers(at, "a", "b")
    for _ in range(10):
        at.pass_time(30_000)
        for member_id in ("a", "b"):
            at.beat(beat_request(member_id, 3))

    assert len(consumers(at).members) == 2


# -- refusals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "some",
    [
        {"group_id": ""},
        {"group_id": "  "},
        {"instance_id": ""},
        {"rack_id": ""},
        {"rebalance_timeout_ms": -1},
        {"owned": None},
        {"owned": {b"t" * 16: frozenset({0})}},
        {"topics": None},
        {"epoch": -3},
        {"epoch": -2},
        {"epoch": 1, "member_id": ""},
        {"epoch": -1, "member_id": ""},
    ],
    ids=str,
)
def test_a_heartbeat_that_makes_no_sense_is_refused(some: dict[str, object]) -> None:
    at = desk()

    with pytest.raises(InvalidGroupRequest):
        at.beat(beat_request("a", 0)._replace(**some))  # type: ignore[arg-type]

    assert at.coordinator.groups == {}


def test_an_assignor_that_there_is_not_is_refused() -> None:
    at = desk(consumer_assignors=("range",))

    with pytest.raises(UnsupportedAssignor):
        at.beat(beat_request("a", 0, assignor="uniform"))

    assert at.coordinator.groups == {}


def test_an_expression_that_re2_does_not_understand_is_refused() -> None:
    at = desk()

    with pytest.raises(InvalidRegularExpression):
        at.beat(beat_request("a", 0, expression="(?=ahead)"))

    assert at.coordinator.groups == {}


def test_strangers_cannot_stay_or_leave() -> None:
    at = desk()
    for epoch in (1, -1):
        with pytest.raises(GroupIdNotFound):
            at.beat(beat_request("a", epoch))
    at.beat(beat_request("a", 0))
    for epoch in (1, -1):
        with pytest.raises(UnknownMember):
            at.beat(beat_request("b", epoch))


def test_a_full_group_takes_nobody_but_its_members() -> None:
    at = desk(consumer_max_size=1)
    at.beat(beat_request("a", 0))

    with pytest.raises(GroupIsFull):
        at.beat(beat_request("b", 0))

    assert at.beat(beat_request("a", 0)).epoch == 2
