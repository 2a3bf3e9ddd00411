"""How long committed offsets are kept, by groups of every kind; those that have nothing else go with them."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from support.groups import GroupDesk, beat_request, compacted, join_request, subscription
from unit.coordinators.group.stories import classic, commit_now, consumers, desk, kept, stable_group, sync_all

WEEK_MS = 7 * 24 * 3_600_000


def expire(at: GroupDesk) -> None:
    at.decide(lambda coordinator, now_ms: coordinator.expire_offsets(now_ms))


def test_offsets_of_nobody_expire_after_their_commit() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 1))
    at.pass_time(1_000)
    commit_now(at, ("orders", 1, 1))

    at.pass_time(WEEK_MS - 1_001)
    expire(at)
    assert kept(at) == {("orders", 0), ("orders", 1)}
    at.pass_time(1)
    expire(at)
    assert kept(at) == {("orders", 1)}
    at.pass_time(1_000)
    expire(at)

    assert at.coordinator.groups == {}
    assert compacted(at.log) == []


def test_offsets_of_a_group_that_was_left_expire_after_that() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit_now(at, ("orders", 0, 1), by=(member_id, 1))
    at.pass_time(9_000)
    at.leave((member_id, None))

    at.pass_time(WEEK_MS - 1)
    expire(at)
    assert kept(at) == {("orders", 0)}
    at.crash()
    at.pass_time(1)
    expire(at)

    assert at.coordinator.groups == {}


def test_offsets_of_a_left_group_of_old_whose_record_does_not_say_when_expire_after_their_commit() -> None:
    at = desk()
    group = ClassicGroup("g", ClassicState.EMPTY, 3, protocol_type="consumer", state_timestamp_ms=-1)

    assert group.offset_expiration_base_ms(17) == 17
    assert at.coordinator.groups == {}


def keep_alive(at: GroupDesk, ms: int, member_id: str) -> None:
    """Let so much time pass at once, and the member heartbeat all the while."""
    at.now_ms += ms
    at.heartbeat(member_id, classic(at).generation)


def test_members_keep_the_offsets_of_what_they_read_and_no_others() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit_now(at, ("orders", 0, 1), ("people", 0, 1), by=(member_id, 1))

    keep_alive(at, WEEK_MS, member_id)
    expire(at)

    assert kept(at) == {("orders", 0)}


def test_nothing_expires_while_a_group_comes_together() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit_now(at, ("people", 0, 1), by=(member_id, 1))
    at.join(join_request())

    at.now_ms += WEEK_MS
    expire(at)

    assert kept(at) == {("people", 0)}


@pytest.mark.parametrize(
    "some",
    [{"protocol_type": "connect"}, {"protocols": (("own", b"no subscription"),)}],
    ids=["no consumers", "unreadable"],
)
def test_nothing_expires_while_nobody_can_tell_what_members_read(some: dict[str, Any]) -> None:
    at = desk()
    (member_id,) = stable_group(at, **some)
    commit_now(at, ("people", 0, 1), by=(member_id, 1))

    keep_alive(at, WEEK_MS, member_id)
    expire(at)

    assert kept(at) == {("people", 0)}


def test_consumers_keep_the_offsets_of_what_they_read_and_no_others() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    commit_now(at, ("orders", 0, 1), ("people", 0, 1), by=("a", 2))

    at.now_ms += WEEK_MS
    at.beat(beat_request("a", 2))
    expire(at)
    assert kept(at) == {("orders", 0)}

    at.beat(beat_request("a", -1))
    expire(at)
    assert at.coordinator.groups == {}


def test_an_offset_that_says_when_it_expires_does_so_whatever_the_retention() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 1), expires_ms=at.now_ms + 1_000)
    commit_now(at, ("orders", 1, 1), expires_ms=at.now_ms + 2 * WEEK_MS)

    at.pass_time(1_000)
    expire(at)
    assert kept(at) == {("orders", 1)}
    at.pass_time(2 * WEEK_MS - 1_001)
    expire(at)
    assert kept(at) == {("orders", 1)}
    at.pass_time(1)
    expire(at)
    assert kept(at) == set()


def test_a_group_without_members_and_offsets_goes_at_once() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    at.leave((member_id, None))
    at.beat(beat_request("a", 0, group_id="h"))
    at.beat(beat_request("a", -1, group_id="h"))

    expire(at)

    assert at.coordinator.groups == {}


def test_a_group_that_somebody_is_about_to_join_stays() -> None:
    at = desk()
    member_id = at.join(join_request(requires_known_member_id=True)).answer.member_id

    expire(at)

    assert at.join(join_request(member_id)).answer.generation == 1


def test_groups_with_members_stay_whatever_their_offsets() -> None:
    at = desk()
    stable_group(at)
    at.beat(beat_request("a", 0, group_id="h"))

    expire(at)

    assert classic(at).members
    assert consumers(at, "h").members


def test_what_members_read_is_known_again_after_a_crash() -> None:
    at = desk()
    (member_id,) = stable_group(at, protocols=(("range", subscription("orders", "people")),))
    sync_all(at, [member_id])
    at.crash()

    assert classic(at).is_subscribed("people")
    assert not classic(at).is_subscribed("places")
