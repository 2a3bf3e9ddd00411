"""Committed offsets: kept, deleted, expired; groups that have nothing else go with them."""

from typing import Any

import pytest

from headrace.group.classic import ClassicGroup, State
from headrace.group.errors import GroupIdNotFound, GroupNotEmpty, IllegalGeneration, InvalidGroupId
from headrace.group.offsets import Committed, Offsets
from headrace.group.records import OffsetCommitKey, OffsetCommitValue, decode_record
from headrace.testing.groups import (
    GroupDesk,
    beat_request,
    commit_request,
    compacted,
    join_request,
    subscription,
)
from unit.group.stories import classic, consumers, desk, stable_group, sync_all

WEEK_MS = 7 * 24 * 3_600_000


def commit(
    at: GroupDesk, *offsets: tuple[str, int, int], by: tuple[str, int] = ("", -1), **some: Any
) -> None:
    """Commit now; `some` is what else an offset may have."""
    committed = [
        (topic, number, Committed(offset, -1, "", at.now_ms)._replace(**some))
        for topic, number, offset in offsets
    ]
    at.commit(commit_request([], *by)._replace(offsets=committed))


def expire(at: GroupDesk) -> None:
    at.decide(lambda coordinator, now_ms: coordinator.expire_offsets(now_ms))


def kept(at: GroupDesk) -> set[tuple[str, int]]:
    return set(at.coordinator.offsets.of("g"))


# -- committing ------------------------------------------------------------------------------------


def test_an_offset_is_remembered_with_all_that_was_said_with_it() -> None:
    at = desk()
    commit(at, ("orders", 0, 5), leader_epoch=3, metadata="ünï")

    at.crash()

    assert at.coordinator.offsets.get("g", "orders", 0) == Committed(5, 3, "ünï", at.now_ms)
    assert at.coordinator.offsets.get("g", "orders", 1) is None
    assert at.coordinator.offsets.get("h", "orders", 0) is None


def test_the_last_commit_counts_even_if_it_goes_back() -> None:
    at = desk()
    commit(at, ("orders", 0, 5))
    commit(at, ("orders", 0, 3))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 3


def test_an_offset_that_says_when_it_expires_is_written_so() -> None:
    at = desk()
    commit(at, ("orders", 0, 5), expires_ms=at.now_ms + 1_000)

    record = decode_record(*at.log[-1])

    assert record is not None
    assert isinstance(record.value, OffsetCommitValue)
    assert record.value.expire_timestamp == at.now_ms + 1_000
    at.crash()
    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.expires_ms == at.now_ms + 1_000


def test_who_commits_to_a_group_that_there_is_not_begins_one_without_members() -> None:
    at = desk()
    commit(at, ("orders", 0, 5))

    assert classic(at).state is State.EMPTY
    assert classic(at).protocol_type is None


@pytest.mark.parametrize(("version", "error"), [(9, GroupIdNotFound), (8, IllegalGeneration)])
def test_a_member_of_a_group_that_there_is_not_cannot_commit(version: int, error: type[Exception]) -> None:
    at = desk()

    with pytest.raises(error):
        at.commit(commit_request([("orders", 0, 5)], "m", 1, version=version))

    assert at.log == []


# -- deleting --------------------------------------------------------------------------------------


def delete_offsets(at: GroupDesk, *places: tuple[str, int], group_id: str = "g") -> Any:
    return at.decide(lambda coordinator, now_ms: coordinator.delete_offsets(group_id, places, now_ms))


def test_offsets_are_deleted_one_by_one() -> None:
    at = desk()
    commit(at, ("orders", 0, 1), ("orders", 1, 1))

    assert delete_offsets(at, ("orders", 0), ("orders", 9), ("people", 0)) == set()

    assert kept(at) == {("orders", 1)}
    assert at.log[-1][1] is None


def test_offsets_of_topics_that_members_read_are_kept() -> None:
    at = desk()
    commit(at, ("orders", 0, 1), ("people", 0, 1))
    stable_group(at)

    assert delete_offsets(at, ("orders", 0), ("people", 0)) == {"orders"}

    assert kept(at) == {("orders", 0)}


def test_offsets_of_topics_that_a_consumer_reads_are_kept() -> None:
    at = desk()
    commit(at, ("orders", 0, 1), ("people", 0, 1))
    at.beat(beat_request("a", 0))

    assert delete_offsets(at, ("orders", 0), ("people", 0)) == {"orders"}

    assert kept(at) == {("orders", 0)}


def test_nothing_is_deleted_while_nobody_can_tell_what_members_read() -> None:
    at = desk()
    commit(at, ("orders", 0, 1))
    stable_group(at, protocol_type="connect")

    with pytest.raises(GroupNotEmpty):
        delete_offsets(at, ("orders", 0))


def test_offsets_of_no_group_cannot_be_deleted() -> None:
    at = desk()
    with pytest.raises(GroupIdNotFound):
        delete_offsets(at, ("orders", 0))
    with pytest.raises(InvalidGroupId):
        delete_offsets(at, ("orders", 0), group_id="")


def test_a_group_is_deleted_with_its_offsets() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit(at, ("orders", 0, 1), by=(member_id, 1))
    at.leave((member_id, None))

    at.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))

    assert at.coordinator.groups == {}
    assert kept(at) == set()
    assert compacted(at.log) == []


def test_a_consumer_group_is_deleted_with_all_that_was_written_of_it() -> None:
    at = desk()
    at.beat(beat_request("a", 0, expression="o.*"))
    commit(at, ("orders", 0, 1), by=("a", 2))
    at.beat(beat_request("a", -1))

    at.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))

    assert at.coordinator.groups == {}
    assert compacted(at.log) == []


def test_a_group_with_members_is_not_deleted() -> None:
    at = desk()
    stable_group(at)
    with pytest.raises(GroupNotEmpty):
        at.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))

    other = desk()
    other.beat(beat_request("a", 0))
    with pytest.raises(GroupNotEmpty):
        other.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))
    with pytest.raises(GroupIdNotFound):
        other.decide(lambda coordinator, now_ms: coordinator.delete_group("h", now_ms))


def test_offsets_of_a_topic_go_with_it_in_all_groups() -> None:
    at = desk()
    for group_id in ("g", "h"):
        for topic in ("orders", "people"):
            at.commit(commit_request([(topic, 0, 1), (topic, 1, 1)], group_id=group_id))

    at.decide(lambda coordinator, now_ms: coordinator.forget_topic("orders", now_ms))

    for group_id in ("g", "h"):
        assert set(at.coordinator.offsets.of(group_id)) == {("people", 0), ("people", 1)}


# -- retention -------------------------------------------------------------------------------------


def test_offsets_of_nobody_expire_after_their_commit() -> None:
    at = desk()
    commit(at, ("orders", 0, 1))
    at.pass_time(1_000)
    commit(at, ("orders", 1, 1))

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
    commit(at, ("orders", 0, 1), by=(member_id, 1))
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
    group = ClassicGroup("g", State.EMPTY, 3, protocol_type="consumer", state_timestamp_ms=-1)

    assert group.offsets_age_from(17) == 17
    assert at.coordinator.groups == {}


def keep_alive(at: GroupDesk, ms: int, member_id: str) -> None:
    """Let so much time pass at once, and the member heartbeat all the while."""
    at.now_ms += ms
    at.heartbeat(member_id, classic(at).generation)


def test_members_keep_the_offsets_of_what_they_read_and_no_others() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit(at, ("orders", 0, 1), ("people", 0, 1), by=(member_id, 1))

    keep_alive(at, WEEK_MS, member_id)
    expire(at)

    assert kept(at) == {("orders", 0)}


def test_nothing_expires_while_a_group_comes_together() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    commit(at, ("people", 0, 1), by=(member_id, 1))
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
    commit(at, ("people", 0, 1), by=(member_id, 1))

    keep_alive(at, WEEK_MS, member_id)
    expire(at)

    assert kept(at) == {("people", 0)}


def test_consumers_keep_the_offsets_of_what_they_read_and_no_others() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    commit(at, ("orders", 0, 1), ("people", 0, 1), by=("a", 2))

    at.now_ms += WEEK_MS
    at.beat(beat_request("a", 2))
    expire(at)
    assert kept(at) == {("orders", 0)}

    at.beat(beat_request("a", -1))
    expire(at)
    assert at.coordinator.groups == {}


def test_an_offset_that_says_when_it_expires_does_so_whatever_the_retention() -> None:
    at = desk()
    commit(at, ("orders", 0, 1), expires_ms=at.now_ms + 1_000)
    commit(at, ("orders", 1, 1), expires_ms=at.now_ms + 2 * WEEK_MS)

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
    member_id = at.join(join_request(asks_for_id=True)).answer.member_id

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


# -- the book itself -------------------------------------------------------------------------------


def test_a_tombstone_for_what_is_not_there_changes_nothing() -> None:
    offsets = Offsets()
    offsets.apply(OffsetCommitKey(group="g", topic="t", partition=0), None)

    assert offsets.of("g") == {}
    assert list(offsets.of_topic("t")) == []
    assert offsets.tombstones("g") == []
