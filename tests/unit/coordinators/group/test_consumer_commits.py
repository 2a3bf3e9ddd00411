"""Commits of members of a consumer group, and what is left of it after a crash."""

import pytest

from headrace.coordinators.decision import Producer
from headrace.coordinators.group.consumer import MemberState
from headrace.coordinators.group.errors import (
    GroupIdNotFound,
    IllegalGeneration,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedByGroup,
)
from support.groups import beat_request, commit_request
from unit.coordinators.group.stories import consumers, desk, settle_consumers

# -- commits ---------------------------------------------------------------------------------------


def test_a_member_commits_at_its_epoch() -> None:
    at = desk()
    at.beat(beat_request("a", 0))

    at.commit(commit_request([("orders", 0, 5)], "a", 2))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 5


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "error"),
    [
        ("a", 1, 9, StaleMemberEpoch),
        ("a", 3, 9, StaleMemberEpoch),
        ("a", -1, 9, StaleMemberEpoch),
        ("b", 2, 9, UnknownMember),
        ("", -1, 9, UnknownMember),
        ("a", 2, 8, UnsupportedByGroup),
    ],
)
def test_nobody_else_commits_to_a_group_with_members(
    member_id: str, epoch: int, version: int, error: type[Exception]
) -> None:
    at = desk()
    at.beat(beat_request("a", 0))

    with pytest.raises(error):
        at.commit(commit_request([("orders", 0, 5)], member_id, epoch, version=version))

    assert not at.coordinator.offsets.of("g")


@pytest.mark.parametrize(
    ("group", "version", "error"),
    [
        ("g", 5, IllegalGeneration),
        ("g", 6, StaleMemberEpoch),
        ("unknown", 5, IllegalGeneration),
        ("unknown", 6, GroupIdNotFound),
    ],
)
def test_an_epoch_that_is_not_current_has_an_error_of_its_own_since_txn_offset_commit_v6(
    group: str, version: int, error: type[Exception]
) -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    commit = commit_request([("orders", 0, 5)], "a", 1, version=version, group_id=group)

    with pytest.raises(error) as raised:
        at.coordinator.commit_in_transaction(commit, Producer(7, 0), 0)

    assert raised.type is error


def test_anybody_without_an_epoch_commits_to_a_group_without_members() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("a", -1))

    at.commit(commit_request([("orders", 0, 5)]))

    assert len(at.coordinator.offsets.of("g")) == 1


@pytest.mark.parametrize(
    ("member_id", "epoch", "error"),
    [("a", 1, StaleMemberEpoch), ("b", 2, UnknownMember), (None, 2, UnknownMember)],
)
def test_offsets_are_not_read_by_members_at_another_epoch(
    member_id: str | None, epoch: int, error: type[Exception]
) -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.coordinator.check_fetch("g", "a", 2)
    at.coordinator.check_fetch("g", None, -1)
    at.coordinator.check_fetch("other", "a", 2)

    with pytest.raises(error):
        at.coordinator.check_fetch("g", member_id, epoch)


# -- crashes ---------------------------------------------------------------------------------------


def test_a_group_goes_on_as_it_was_after_a_crash() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0))
    at.beat(beat_request("a", 2))

    at.crash()

    member = consumers(at).members["a"]
    assert (member.epoch, member.state) == (2, MemberState.UNREVOKED)
    assert settle_consumers(at, "a", "b").keys() == {"a", "b"}


def test_members_have_a_session_and_time_to_give_up_from_when_the_log_is_read() -> None:
    at = desk()
    at.beat(beat_request("a", 0, rebalance_timeout_ms=20_000))
    at.beat(beat_request("b", 0))
    at.beat(beat_request("a", 2))
    at.pass_time(19_000)
    at.crash()

    at.pass_time(19_999)
    assert "a" in consumers(at).members
    at.pass_time(1)
    assert list(consumers(at).members) == ["b"]
    at.pass_time(25_000)
    assert consumers(at).members == {}
