"""How a classic group comes together: EMPTY to PREPARING to COMPLETING."""

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.decision import Joined, JoinedMember
from headrace.coordinators.group.errors import (
    InvalidGroupRequest,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from support.groups import GroupDesk, join_request, subscription
from unit.coordinators.group.stories import classic, completing_group, desk, stable_group

ORDERS = subscription("orders")


def test_the_first_member_leads_the_first_generation() -> None:
    at = desk()

    waiter = at.join(join_request())

    assert waiter.answer == Joined(
        member_id="client-id1",
        generation=1,
        protocol_type="consumer",
        protocol_name="range",
        leader="client-id1",
        members=[JoinedMember("client-id1", None, ORDERS)],
    )
    assert classic(at).state is ClassicState.COMPLETING
    assert at.log == []


def test_a_new_member_is_told_its_id_and_joins_with_it() -> None:
    at = desk()

    refused = at.join(join_request(requires_known_member_id=True)).answer

    assert isinstance(refused, MemberIdRequired)
    assert refused.member_id == "client-id1"
    assert classic(at).state is ClassicState.EMPTY
    assert classic(at).pending == {"client-id1"}
    assert at.join(join_request("client-id1", requires_known_member_id=True)).answer.member_id == "client-id1"
    assert classic(at).pending == set()


def test_a_static_member_is_not_asked_to_join_twice() -> None:
    at = desk()

    assert at.join(join_request(instance_id="i1", requires_known_member_id=True)).answer.member_id == "i1-id1"


def test_a_pending_member_cannot_turn_out_to_be_static() -> None:
    at = desk()
    member_id = at.join(join_request(requires_known_member_id=True)).answer.member_id

    with pytest.raises(InvalidGroupRequest):
        at.join(join_request(member_id, "i1"))


def test_only_the_leader_sees_the_others() -> None:
    at = desk()
    first = at.join(join_request()).answer.member_id

    second = at.join(join_request())
    assert not second.is_answered
    leader = at.join(join_request(first))

    assert [member.member_id for member in leader.answer.members] == [first, second.answer.member_id]
    assert second.answer.members == ()
    assert {leader.answer.generation, second.answer.generation} == {2}
    assert {leader.answer.leader, second.answer.leader} == {first}


def test_a_generation_waits_for_members_that_were_given_an_id() -> None:
    at = desk()
    (first,) = stable_group(at)
    pending = at.join(join_request(requires_known_member_id=True)).answer.member_id
    second = at.join(join_request())

    again = at.join(join_request(first))
    assert not again.is_answered
    third = at.join(join_request(pending))

    assert {waiter.answer.generation for waiter in (second, again, third)} == {2}


def test_a_pending_member_that_never_joins_holds_nobody_up_for_longer_than_its_session() -> None:
    at = desk()
    (first,) = stable_group(at)
    at.join(join_request(requires_known_member_id=True, session_timeout_ms=7_000))
    second = at.join(join_request())
    again = at.join(join_request(first))

    at.pass_time(6_999)
    assert not again.is_answered
    at.pass_time(1)

    assert again.answer.generation == second.answer.generation == 2


# -- the first delay -------------------------------------------------------------------------------


def test_a_new_group_waits_for_more_members() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)

    first, second = at.join(join_request()), at.join(join_request())
    at.pass_time(2_999)
    assert not first.is_answered
    at.pass_time(3_001)

    assert first.answer.generation == second.answer.generation == 1
    assert len(first.answer.members) == 2


def test_a_new_group_waits_on_as_long_as_more_come() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)

    waiters = [at.join(join_request(rebalance_timeout_ms=10_000))]
    for _ in range(2):
        at.pass_time(2_900)
        waiters.append(at.join(join_request(rebalance_timeout_ms=10_000)))
    at.pass_time(3_199)
    assert not any(waiter.is_answered for waiter in waiters)
    at.pass_time(1)

    assert len(waiters[0].answer.members) == 3


def test_a_new_group_waits_no_longer_than_its_first_member_wants() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)

    waiters = []
    for _ in range(4):
        waiters.append(at.join(join_request(rebalance_timeout_ms=7_000)))
        at.pass_time(1_900)
    assert len(waiters[0].answer.members) == 4
    assert at.now_ms == 1_000_000 + 7_600


def test_a_delay_that_is_longer_than_members_are_patient_is_kept_to() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)

    first = at.join(join_request(rebalance_timeout_ms=1_000))
    at.join(join_request(rebalance_timeout_ms=1_000))
    at.pass_time(2_999)
    assert not first.is_answered
    at.pass_time(1)

    assert first.answer.generation == 1


def test_a_new_group_whose_only_member_leaves_while_it_waits_takes_another() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)
    member_id = at.join(join_request(requires_known_member_id=True)).answer.member_id
    at.join(join_request(member_id))
    assert at.leave((member_id, None)) == [None]

    other = at.join(join_request())
    at.pass_time(6_000)

    assert other.answer.generation == 1


def test_a_new_group_that_everybody_leaves_while_it_waits_is_empty_in_the_end() -> None:
    at = GroupDesk(initial_rebalance_delay_ms=3_000)
    member_id = at.join(join_request(requires_known_member_id=True)).answer.member_id
    waiter = at.join(join_request(member_id))

    at.leave((member_id, None))
    at.pass_time(3_000)

    assert isinstance(waiter.answer, UnknownMember)
    assert (classic(at).state, classic(at).generation) == (ClassicState.EMPTY, 1)


# -- joining again ---------------------------------------------------------------------------------


def test_a_leader_that_joins_a_stable_group_again_has_everybody_join() -> None:
    at = desk()
    first, second = stable_group(at, 2)

    leader = at.join(join_request(first))

    assert classic(at).state is ClassicState.PREPARING
    with pytest.raises(RebalanceInProgress):
        at.heartbeat(second, 2)
    follower = at.join(join_request(second))
    assert leader.answer.generation == follower.answer.generation == 3


def test_a_follower_that_joins_a_stable_group_again_is_told_what_it_knows() -> None:
    at = desk()
    _, second = stable_group(at, 2)

    answer = at.join(join_request(second)).answer

    assert (answer.generation, answer.members) == (2, ())
    assert classic(at).state is ClassicState.STABLE


def test_a_follower_with_another_subscription_has_everybody_join() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    protocols = (("range", subscription("orders", "people")),)

    follower = at.join(join_request(second, protocols=protocols))
    leader = at.join(join_request(first))

    assert follower.answer.generation == 3
    assert leader.answer.members[1].metadata == protocols[0][1]


def test_a_member_that_missed_its_answer_is_told_again_while_the_group_completes() -> None:
    at = desk()
    first, second = completing_group(at, 2)

    leader, follower = at.join(join_request(first)).answer, at.join(join_request(second)).answer

    assert [member.member_id for member in leader.members] == [first, second]
    assert follower.members == ()
    assert leader.generation == follower.generation == 2
    assert classic(at).state is ClassicState.COMPLETING


def test_another_subscription_while_the_group_completes_begins_anew() -> None:
    at = desk()
    first, second = completing_group(at, 2)

    at.join(join_request(second, protocols=(("range", subscription("people")),)))

    assert classic(at).state is ClassicState.PREPARING
    assert at.join(join_request(first)).answer.generation == 3


def test_who_joins_twice_is_answered_once_for_each() -> None:
    at = desk()
    first, second = stable_group(at, 2)
    once = at.join(join_request(first))

    twice = at.join(join_request(first))

    assert isinstance(once.answer, RebalanceInProgress)
    assert not twice.is_answered
    at.join(join_request(second))
    assert twice.answer.generation == 3


def test_a_member_may_change_its_timeouts_when_it_joins() -> None:
    at = desk()
    (first,) = stable_group(at)

    at.join(join_request(first, session_timeout_ms=20_000, rebalance_timeout_ms=90_000))

    member = classic(at).members[first]
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (20_000, 90_000)
