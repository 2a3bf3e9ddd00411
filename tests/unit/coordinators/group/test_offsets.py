"""Committed offsets: kept, and deleted one by one, with their group, or with their topic."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.errors import (
    GroupIdNotFound,
    GroupNotEmpty,
    IllegalGeneration,
    InvalidGroupId,
)
from headrace.coordinators.group.offsets import Committed, Offsets
from headrace.coordinators.group.records import OffsetCommitKey, OffsetCommitValue, decode_record
from support.groups import GroupDesk, beat_request, commit_request, compacted
from unit.coordinators.group.stories import classic, commit_now, desk, kept, stable_group

# -- committing ------------------------------------------------------------------------------------


def test_an_offset_is_remembered_with_all_that_was_said_with_it() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 5), leader_epoch=3, metadata="ünï")

    at.crash()

    assert at.coordinator.offsets.get("g", "orders", 0) == Committed(5, 3, "ünï", at.now_ms)
    assert at.coordinator.offsets.get("g", "orders", 1) is None
    assert at.coordinator.offsets.get("h", "orders", 0) is None


def test_the_last_commit_counts_even_if_it_goes_back() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 5))
    commit_now(at, ("orders", 0, 3))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 3


def test_an_offset_that_says_when_it_expires_is_written_so() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 5), expires_ms=at.now_ms + 1_000)

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
    commit_now(at, ("orders", 0, 5))

    assert classic(at).state is ClassicState.EMPTY
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
    commit_now(at, ("orders", 0, 1), ("orders", 1, 1))

    assert delete_offsets(at, ("orders", 0), ("orders", 9), ("people", 0)) == set()

    assert kept(at) == {("orders", 1)}
    assert at.log[-1][1] is None


def test_offsets_of_topics_that_members_read_are_kept() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 1), ("people", 0, 1))
    stable_group(at)

    assert delete_offsets(at, ("orders", 0), ("people", 0)) == {"orders"}

    assert kept(at) == {("orders", 0)}


def test_offsets_of_topics_that_a_consumer_reads_are_kept() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 1), ("people", 0, 1))
    at.beat(beat_request("a", 0))

    assert delete_offsets(at, ("orders", 0), ("people", 0)) == {"orders"}

    assert kept(at) == {("orders", 0)}


def test_nothing_is_deleted_while_nobody_can_tell_what_members_read() -> None:
    at = desk()
    commit_now(at, ("orders", 0, 1))
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
    commit_now(at, ("orders", 0, 1), by=(member_id, 1))
    at.leave((member_id, None))

    at.decide(lambda coordinator, now_ms: coordinator.delete_group("g", now_ms))

    assert at.coordinator.groups == {}
    assert kept(at) == set()
    assert compacted(at.log) == []


def test_a_consumer_group_is_deleted_with_all_that_was_written_of_it() -> None:
    at = desk()
    at.beat(beat_request("a", 0, expression="o.*"))
    commit_now(at, ("orders", 0, 1), by=("a", 2))
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

    at.decide(lambda coordinator, now_ms: coordinator.topic_deleted("orders", now_ms))

    for group_id in ("g", "h"):
        assert set(at.coordinator.offsets.of(group_id)) == {("people", 0), ("people", 1)}


# -- the book itself -------------------------------------------------------------------------------


def test_a_tombstone_for_what_is_not_there_changes_nothing() -> None:
    offsets = Offsets()
    offsets.apply(OffsetCommitKey(group="g", topic="t", partition=0), None)

    assert offsets.of("g") == {}
    assert list(offsets.of_topic("t")) == []
    assert offsets.tombstones("g") == []
