"""How members of a classic group go: they leave, are silent, do not join again, do not sync."""

from contextlib import suppress

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.errors import InvalidGroupId, RebalanceInProgress, UnknownMember
from headrace.coordinators.group.records import GroupMetadataValue, decode_record
from support.groups import GroupDesk, Waiter, join_request, sync_request
from unit.coordinators.group.stories import classic, completing_group, desk, stable_group


def keep_alive(at: GroupDesk, ms: int, *member_ids: str) -> None:
    """Let time pass while these heartbeat, as long as they are members, whatever they are told."""
    for _ in range(ms // 5_000):
        at.pass_time(5_000)
        for member_id in classic(at).members.keys() & set(member_ids):
            with suppress(RebalanceInProgress):
                at.heartbeat(member_id, classic(at).generation)


# -- leaving ---------------------------------------------------------------------------------------


def test_who_leaves_is_gone_at_once_and_the_others_come_together_anew() -> None:
    at = desk()
    first, second = stable_group(at, 2)

    assert at.leave((first, None)) == [None]

    assert list(classic(at).members) == [second]
    assert classic(at).state is ClassicState.PREPARING
    assert classic(at).leader == second
    assert at.join(join_request(second)).answer.generation == 3


def test_the_last_to_leave_leaves_an_empty_group_in_a_generation_of_its_own() -> None:
    at = desk()
    (first,) = stable_group(at)

    at.leave((first, None))

    group = classic(at)
    assert (group.state, group.generation, group.leader) == (ClassicState.EMPTY, 2, None)
    assert (group.protocol_type, group.protocol_name) == ("consumer", None)
    record = decode_record(*at.log[-1])
    assert record is not None
    assert isinstance(record.value, GroupMetadataValue)
    assert (record.value.members, record.value.current_state_timestamp) == ([], at.now_ms)


def test_the_next_generation_is_a_later_one() -> None:
    at = desk()
    (first,) = stable_group(at)
    at.leave((first, None))

    assert at.join(join_request()).answer.generation == 3


def test_who_leaves_while_it_waits_is_answered() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    joining = at.join(join_request(first))
    at.leave((first, None))
    assert isinstance(joining.answer, UnknownMember)

    at.join(join_request(second))
    third = at.join(join_request())
    at.join(join_request(second))
    syncing = at.sync(sync_request(third.answer.member_id, third.answer.generation))
    at.leave((third.answer.member_id, None))
    assert isinstance(syncing.answer, UnknownMember)


def test_a_leave_lets_those_go_on_who_waited_only_for_that_member() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    waiting = at.join(join_request(first))

    at.leave((second, None))

    assert waiting.answer.generation == 3


def test_a_pending_member_can_leave() -> None:
    at = desk()
    (first,) = stable_group(at)
    pending = at.join(join_request(requires_known_member_id=True)).answer.member_id
    waiting = at.join(join_request(first))
    assert not waiting.is_answered

    assert at.leave((pending, None)) == [None]

    assert waiting.answer.generation == 2


def test_several_leave_at_once_and_each_is_told_how_it_went() -> None:
    at = desk()
    first, second, third = stable_group(at, 3)

    gone, unknown, also = at.leave((first, None), ("somebody", None), (second, None))

    assert (gone, also) == (None, None)
    assert isinstance(unknown, UnknownMember)
    assert list(classic(at).members) == [third]


def test_strangers_who_leave_change_nothing() -> None:
    at = desk()
    stable_group(at)
    (error,) = at.leave(("somebody", None))
    assert isinstance(error, UnknownMember)
    (error,) = at.leave(("", "nobody's instance"))
    assert isinstance(error, UnknownMember)
    (error,) = at.leave(("somebody", None), group_id="other")
    assert isinstance(error, UnknownMember)
    with pytest.raises(InvalidGroupId):
        at.leave(("somebody", None), group_id="")

    assert classic(at).state is ClassicState.STABLE


# -- silence ---------------------------------------------------------------------------------------


def test_a_silent_member_is_removed_when_its_session_is_over() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    at.pass_time(5_000)
    at.heartbeat(second, 2)

    at.pass_time(4_999)
    assert first in classic(at).members
    at.pass_time(1)

    assert list(classic(at).members) == [second]
    assert classic(at).state is ClassicState.PREPARING


def test_a_group_whose_members_are_all_silent_is_empty() -> None:
    at = desk()
    stable_group(at, 3)

    at.pass_time(10_000)

    assert (classic(at).state, classic(at).members) == (ClassicState.EMPTY, {})


def test_who_waits_for_an_answer_need_not_speak() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    waiting = at.join(join_request(first))
    keep_alive(at, 50_000, second)

    assert not waiting.is_answered
    assert first in classic(at).members

    at.join(join_request(second))
    syncing = at.sync(sync_request(second, 3))
    keep_alive(at, 50_000, first)
    assert not syncing.is_answered
    assert second in classic(at).members


def test_a_new_member_that_is_gone_is_not_waited_for_without_end() -> None:
    at = desk()
    (first,) = stable_group(at, rebalance_timeout_ms=600_000)
    new = at.join(join_request())
    keep_alive(at, 295_000, first)
    assert not new.is_answered

    keep_alive(at, 5_000, first)

    assert isinstance(new.answer, UnknownMember)
    assert list(classic(at).members) == [first]


def test_who_has_just_been_told_of_a_generation_has_a_whole_session_from_then() -> None:
    """Even if its last one was over at the same moment: it was waiting, and need not have spoken."""
    at = desk()
    first, second = stable_group(at, 2)
    waiting = at.join(join_request(second, protocols=(("range", b""),)))

    at.now_ms += 10_500  # late: both sessions are over
    at.expire()

    assert first not in classic(at).members
    assert waiting.answer.generation == 3
    at.pass_time(9_999)
    assert list(classic(at).members) == [second]


# -- not joining again -----------------------------------------------------------------------------


def test_who_does_not_join_again_in_time_is_removed() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    waiting = at.join(join_request(first))

    keep_alive(at, 55_000, second)
    assert not waiting.is_answered
    keep_alive(at, 5_000, second)

    assert waiting.answer.generation == 3
    assert list(classic(at).members) == [first]


def test_everybody_is_waited_for_as_long_as_the_most_patient_member_wants() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    waiting = at.join(join_request(first, rebalance_timeout_ms=100_000))

    keep_alive(at, 95_000, second)
    assert not waiting.is_answered
    keep_alive(at, 5_000, second)

    assert waiting.answer.generation == 3


def test_a_leader_that_does_not_join_again_is_replaced() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    new: Waiter = at.join(join_request())
    again = at.join(join_request(second))

    keep_alive(at, 60_000, first)

    assert again.answer.leader == second
    assert [member.member_id for member in again.answer.members] == [second, new.answer.member_id]


def test_nobody_joins_again_and_the_group_is_empty() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    at.leave((first, None))

    keep_alive(at, 60_000, second)

    assert classic(at).state is ClassicState.EMPTY


# -- not syncing -----------------------------------------------------------------------------------


def test_who_does_not_sync_in_time_is_removed_and_the_others_come_together_anew() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    at.sync(sync_request(first, 2, {}))

    keep_alive(at, 55_000, first, second)
    assert classic(at).state is ClassicState.STABLE
    keep_alive(at, 5_000, first, second)

    assert list(classic(at).members) == [first]
    assert classic(at).state is ClassicState.PREPARING


def test_a_leader_that_does_not_sync_in_time_is_removed() -> None:
    at = desk()
    first, second = completing_group(at, 2)
    waiting = at.sync(sync_request(second, 2))

    keep_alive(at, 60_000, first)

    assert isinstance(waiting.answer, RebalanceInProgress)
    assert classic(at).leader == second
    assert at.join(join_request(second)).answer.generation == 3


def test_who_has_synced_is_not_removed_for_it() -> None:
    at = desk()
    (first,) = stable_group(at)

    keep_alive(at, 120_000, first)

    assert classic(at).state is ClassicState.STABLE


def test_nobody_syncs_and_the_group_is_empty() -> None:
    at = desk()
    first, second = completing_group(at, 2)

    keep_alive(at, 60_000, first, second)

    assert classic(at).state is ClassicState.EMPTY
