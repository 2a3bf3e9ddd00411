"""How a classic group gets its assignment, from COMPLETING to STABLE; heartbeats; commits."""

from typing import Any

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.decision import Synced
from headrace.coordinators.group.errors import (
    IllegalGeneration,
    InconsistentProtocol,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.coordinators.group.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    decode_record,
)
from support.groups import commit_request, join_request, subscription, sync_request
from unit.coordinators.group.stories import classic, completing_group, desk, stable_group, sync_all

ORDERS = subscription("orders")


def test_everybody_is_answered_when_the_leader_syncs() -> None:
    at = desk()
    first, second = completing_group(at, 2)

    follower = at.sync(sync_request(second, 2))
    assert not follower.is_answered
    leader = at.sync(sync_request(first, 2, {first: b"a", second: b"b"}))

    assert leader.answer == Synced("consumer", "range", b"a")
    assert follower.answer == Synced("consumer", "range", b"b")
    assert classic(at).state is ClassicState.STABLE


def test_who_syncs_after_the_leader_is_answered_at_once() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    at.sync(sync_request(first, 2, {second: b"b"}))

    assert at.sync(sync_request(second, 2)).answer.assignment == b"b"
    assert at.sync(sync_request(first, 2)).answer.assignment == b""


def test_the_whole_group_is_one_record() -> None:
    at = desk()
    (member_id,) = completing_group(at)

    at.sync(sync_request(member_id, 1, {member_id: b"a", "somebody else": b"b"}))

    (entry,) = at.log
    record = decode_record(*entry)
    assert record == (
        GroupMetadataKey(group="g"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader=member_id,
            current_state_timestamp=at.now_ms,
            members=[
                MemberMetadata(
                    member_id=member_id,
                    group_instance_id=None,
                    client_id="client",
                    client_host="/127.0.0.1",
                    rebalance_timeout=60_000,
                    session_timeout=10_000,
                    subscription=ORDERS,
                    assignment=b"a",
                )
            ],
        ),
    )


def test_a_sync_that_is_repeated_is_answered_once_for_each() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    once = at.sync(sync_request(second, 2))

    twice = at.sync(sync_request(second, 2))

    assert isinstance(once.answer, RebalanceInProgress)
    assert not twice.is_answered
    at.sync(sync_request(first, 2, {second: b"b"}))
    assert twice.answer.assignment == b"b"


def test_a_member_that_joins_meanwhile_sends_everybody_back() -> None:
    at = desk()
    _, second = completing_group(at, 2)
    waiting = at.sync(sync_request(second, 2))

    at.join(join_request())

    assert isinstance(waiting.answer, RebalanceInProgress)
    with pytest.raises(RebalanceInProgress):
        at.sync(sync_request(second, 2))


def test_the_leader_of_an_earlier_generation_assigns_nothing() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    at.join(join_request(second, protocols=(("range", subscription("people")),)))
    at.join(join_request(first))

    with pytest.raises(IllegalGeneration):
        at.sync(sync_request(first, 2, {first: b"old"}))

    assert classic(at).state is ClassicState.COMPLETING
    assert at.log == []


@pytest.mark.parametrize(
    "some", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}], ids=["type", "name"]
)
def test_a_sync_in_another_protocol_is_refused(some: dict[str, Any]) -> None:
    at = desk()
    (member_id,) = completing_group(at)

    with pytest.raises(InconsistentProtocol):
        at.sync(sync_request(member_id, 1, **some))

    assert classic(at).state is ClassicState.COMPLETING


def test_a_sync_may_name_the_protocol_that_the_group_speaks() -> None:
    at = desk()
    (member_id,) = completing_group(at)
    sync = sync_request(member_id, 1, {member_id: b"a"}, protocol_type="consumer", protocol_name="range")

    answer = at.sync(sync).answer

    assert answer == Synced("consumer", "range", b"a")


def test_strangers_and_members_of_nothing_cannot_sync() -> None:
    at = desk()
    with pytest.raises(UnknownMember):
        at.sync(sync_request("somebody", 1))
    with pytest.raises(InvalidGroupId):
        at.sync(sync_request("somebody", 1, group_id=""))

    (member_id,) = stable_group(at)
    for stranger, generation, error in (
        ("somebody", 1, UnknownMember),
        (member_id, 0, IllegalGeneration),
        (member_id, 2, IllegalGeneration),
    ):
        with pytest.raises(error):
            at.sync(sync_request(stranger, generation))


def test_a_group_that_was_left_has_nobody_to_sync() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    at.leave((member_id, None))

    with pytest.raises(UnknownMember):
        at.sync(sync_request(member_id, 2))


# -- heartbeats ------------------------------------------------------------------------------------


def test_members_heartbeat_while_a_group_completes_and_is_stable() -> None:
    at = desk()
    member_ids = completing_group(at, 2)
    for member_id in member_ids:
        at.heartbeat(member_id, 2)
    sync_all(at, member_ids)

    for member_id in member_ids:
        at.heartbeat(member_id, 2)


def test_a_heartbeat_tells_members_to_join_again() -> None:
    at = desk()
    first, _ = stable_group(at, 2)
    at.join(join_request())

    with pytest.raises(RebalanceInProgress):
        at.heartbeat(first, 2)


def test_who_is_told_to_join_again_is_alive() -> None:
    at = desk()
    (first,) = stable_group(at)
    at.join(join_request())

    for _ in range(5):
        at.pass_time(9_999)
        with pytest.raises(RebalanceInProgress):
            at.heartbeat(first, 1)

    assert first in classic(at).members


@pytest.mark.parametrize(
    ("member_id", "generation", "group_id", "error"),
    [
        ("somebody", 1, "g", UnknownMember),
        ("client-id1", 0, "g", IllegalGeneration),
        ("client-id1", 2, "g", IllegalGeneration),
        ("client-id1", 1, "other", UnknownMember),
        ("client-id1", 1, "", InvalidGroupId),
    ],
)
def test_a_heartbeat_of_somebody_else_is_refused(
    member_id: str, generation: int, group_id: str, error: type[Exception]
) -> None:
    at = desk()
    stable_group(at)

    with pytest.raises(error):
        at.heartbeat(member_id, generation, group_id=group_id)


def test_a_group_that_was_left_has_nobody_to_heartbeat() -> None:
    at = desk()
    (member_id,) = stable_group(at)
    at.leave((member_id, None))

    with pytest.raises(UnknownMember):
        at.heartbeat(member_id, 2)


# -- commits ---------------------------------------------------------------------------------------


def test_members_commit_in_their_generation_while_the_group_comes_together_anew() -> None:
    at = desk()
    first, _ = stable_group(at, 2)
    at.commit(commit_request([("orders", 0, 5)], first, 2))
    at.join(join_request())
    at.commit(commit_request([("orders", 0, 6)], first, 2))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 6


def test_a_commit_counts_as_a_heartbeat() -> None:
    at = desk()
    (first,) = stable_group(at)

    for _ in range(5):
        at.pass_time(9_999)
        at.commit(commit_request([("orders", 0, 5)], first, 1))

    assert first in classic(at).members


def test_nobody_commits_before_there_is_an_assignment() -> None:
    at = desk()
    (first,) = completing_group(at)

    with pytest.raises(RebalanceInProgress):
        at.commit(commit_request([("orders", 0, 5)], first, 1))

    assert at.log == []


@pytest.mark.parametrize(
    ("member_id", "generation", "instance_id", "error"),
    [
        ("", -1, None, UnknownMember),
        ("somebody", 1, None, UnknownMember),
        ("client-id1", 0, None, IllegalGeneration),
        ("client-id1", -1, None, IllegalGeneration),
        ("client-id1", 1, "i1", UnknownMember),
        ("", 1, None, UnknownMember),
    ],
)
def test_only_members_of_the_generation_commit_to_a_group_with_members(
    member_id: str, generation: int, instance_id: str | None, error: type[Exception]
) -> None:
    at = desk()
    stable_group(at)
    written = len(at.log)

    with pytest.raises(error):
        at.commit(commit_request([("orders", 0, 5)], member_id, generation, instance_id=instance_id))

    assert len(at.log) == written


def test_anybody_without_a_generation_commits_to_a_group_without_members() -> None:
    at = desk()
    at.commit(commit_request([("orders", 0, 5)]))
    at.commit(commit_request([("orders", 0, 6)], "somebody"))
    (first,) = stable_group(at)
    at.leave((first, None))
    at.commit(commit_request([("orders", 0, 7)]))

    committed = at.coordinator.offsets.get("g", "orders", 0)
    assert committed is not None
    assert committed.offset == 7
    with pytest.raises(UnknownMember):
        at.commit(commit_request([("orders", 0, 8)], first, 1))
