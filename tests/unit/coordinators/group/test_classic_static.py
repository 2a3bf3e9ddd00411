"""Static members of a classic group: their place is kept for them, and only one may have it."""

import pytest

from headrace.coordinators.group.classic import ClassicState
from headrace.coordinators.group.decision import JoinedMember
from headrace.coordinators.group.errors import FencedInstance, RebalanceInProgress, UnknownMember
from support.groups import GroupDesk, commit_request, join_request, subscription, sync_request
from unit.coordinators.group.stories import classic, desk, sync_all

ORDERS = subscription("orders")


def static_group(at: GroupDesk, *instances: str) -> list[str]:
    """A stable group of static members; every member's assignment is its own first name."""
    waiters = [at.join(join_request(instance_id=instances[0]))]
    first = waiters[0].answer.member_id
    waiters += [at.join(join_request(instance_id=instance)) for instance in instances[1:]]
    if len(instances) > 1:
        at.join(join_request(first, instances[0]))
    member_ids = [waiter.answer.member_id for waiter in waiters]
    sync_all(at, member_ids)
    return member_ids


def test_a_static_member_that_is_back_gets_its_place_and_nobody_else_notices() -> None:
    at = desk()
    first, second = static_group(at, "i1", "i2")

    answer = at.join(join_request(instance_id="i2")).answer

    assert (answer.generation, answer.leader, answer.members) == (2, first, ())
    assert answer.member_id not in {first, second}
    assert classic(at).state is ClassicState.STABLE
    at.heartbeat(first, 2, "i1")
    synced = at.sync(sync_request(answer.member_id, 2, instance_id="i2")).answer
    assert synced.assignment == second.encode()


def test_its_new_id_outlives_a_crash() -> None:
    at = desk()
    static_group(at, "i1", "i2")
    new_id = at.join(join_request(instance_id="i2")).answer.member_id

    at.crash()

    assert classic(at).instances["i2"] == new_id
    at.heartbeat(new_id, 2, "i2")


def test_its_former_self_is_fenced_in_all_it_does() -> None:
    at = desk()
    (old_id,) = static_group(at, "i1")
    at.join(join_request(instance_id="i1"))

    with pytest.raises(FencedInstance):
        at.heartbeat(old_id, 1, "i1")
    with pytest.raises(FencedInstance):
        at.join(join_request(old_id, "i1"))
    with pytest.raises(FencedInstance):
        at.sync(sync_request(old_id, 1, instance_id="i1"))
    with pytest.raises(FencedInstance):
        at.commit(commit_request([("orders", 0, 1)], old_id, 1, instance_id="i1"))
    (error,) = at.leave((old_id, "i1"))
    assert isinstance(error, FencedInstance)


def test_a_former_self_that_waits_to_sync_is_fenced() -> None:
    at = desk()
    first = at.join(join_request(instance_id="i1")).answer.member_id
    second = at.join(join_request(instance_id="i2"))
    at.join(join_request(first, "i1"))
    waiting = at.sync(sync_request(second.answer.member_id, 2, instance_id="i2"))

    at.join(join_request(instance_id="i2"))

    assert isinstance(waiting.answer, FencedInstance)


def test_a_former_self_that_waits_to_join_is_fenced() -> None:
    at = desk()
    first, _ = static_group(at, "i1", "i2")
    waiting = at.join(join_request(first, "i1"))

    again = at.join(join_request(instance_id="i1"))

    assert isinstance(waiting.answer, FencedInstance)
    assert not again.is_answered


def test_nobody_waits_for_a_former_self_to_sync() -> None:
    at = desk()
    first = at.join(join_request(instance_id="i1")).answer.member_id
    at.join(join_request(instance_id="i2"))
    at.join(join_request(first, "i1"))
    at.sync(sync_request(first, 2, {}, instance_id="i1"))

    new_id = at.join(join_request(instance_id="i2")).answer.member_id
    for _ in range(13):
        at.pass_time(5_000)
        at.heartbeat(first, 2, "i1")
        at.heartbeat(new_id, 2, "i2")

    assert classic(at).state is ClassicState.STABLE


def test_a_leader_that_is_back_leads_and_need_not_assign() -> None:
    at = desk()
    _, second = static_group(at, "i1", "i2")

    answer = at.join(join_request(instance_id="i1")).answer

    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert answer.members == [
        JoinedMember(answer.member_id, "i1", ORDERS),
        JoinedMember(second, "i2", ORDERS),
    ]


def test_an_old_client_is_told_that_its_former_self_leads() -> None:
    at = desk()
    first, _ = static_group(at, "i1", "i2")

    answer = at.join(join_request(instance_id="i1", supports_skipping_assignment=False)).answer

    assert (answer.leader, answer.members, answer.skip_assignment) == (first, (), False)


def test_a_member_that_is_back_and_changes_the_protocol_has_everybody_join() -> None:
    at = desk()
    protocols = (("range", ORDERS), ("sticky", ORDERS))
    waiters = [at.join(join_request(instance_id="i1", protocols=protocols))]
    sync_all(at, [waiters[0].answer.member_id])

    again = at.join(join_request(instance_id="i1", protocols=protocols[::-1]))

    assert (again.answer.generation, again.answer.protocol_name) == (2, "sticky")


def test_a_member_that_is_back_while_the_group_completes_sends_everybody_back() -> None:
    at = desk()
    first = at.join(join_request(instance_id="i1")).answer.member_id
    second = at.join(join_request(instance_id="i2"))
    at.join(join_request(first, "i1"))
    waiting = at.sync(sync_request(second.answer.member_id, 2, instance_id="i2"))

    at.join(join_request(instance_id="i1"))

    assert isinstance(waiting.answer, RebalanceInProgress)
    assert classic(at).state is ClassicState.PREPARING


def test_a_member_that_is_back_while_the_group_comes_together_joins() -> None:
    at = desk()
    _, second = static_group(at, "i1", "i2")
    new = at.join(join_request(instance_id="i3"))
    at.join(join_request(second, "i2"))

    back = at.join(join_request(instance_id="i1"))

    assert back.answer.generation == new.answer.generation == 3


def test_a_static_member_need_not_join_again_to_stay_in_the_group() -> None:
    at = desk()
    first, second = static_group(at, "i1", "i2")
    new = at.join(join_request(instance_id="i3"))
    again = at.join(join_request(second, "i2"))
    for _ in range(11):
        at.pass_time(5_000)
        with pytest.raises(RebalanceInProgress):
            at.heartbeat(first, 2, "i1")
    assert not again.is_answered
    at.pass_time(5_000)

    assert again.answer.leader == second
    assert [member.member_id for member in again.answer.members] == [first, second, new.answer.member_id]


def test_a_group_whose_static_members_are_all_away_waits_for_them() -> None:
    at = desk()
    first, second = static_group(at, "i1", "i2")
    at.leave((second, "i2"))
    for _ in range(13):
        at.pass_time(5_000)
        with pytest.raises(RebalanceInProgress):
            at.heartbeat(first, 2, "i1")

    assert classic(at).state is ClassicState.PREPARING
    assert at.join(join_request(first, "i1")).answer.generation == 3


def test_a_static_member_is_away_no_longer_than_its_session() -> None:
    at = desk()
    first, second = static_group(at, "i1", "i2")

    at.pass_time(9_999)
    at.heartbeat(first, 2, "i1")
    at.pass_time(1)

    assert second not in classic(at).members
    assert "i2" not in classic(at).instances


def test_a_member_that_is_back_has_a_session_of_its_own() -> None:
    at = desk()
    static_group(at, "i1")
    at.pass_time(9_999)
    new_id = at.join(join_request(instance_id="i1")).answer.member_id

    at.pass_time(9_999)
    assert new_id in classic(at).members
    at.pass_time(1)

    assert classic(at).state is ClassicState.EMPTY


def test_an_instance_that_nobody_has_is_unknown() -> None:
    at = desk()
    (member_id,) = static_group(at, "i1")

    with pytest.raises(UnknownMember):
        at.heartbeat(member_id, 1, "i2")
    with pytest.raises(UnknownMember):
        at.join(join_request(member_id, "i2"))
    with pytest.raises(UnknownMember):
        at.sync(sync_request(member_id, 1, instance_id="i2"))


def test_somebody_else_can_remove_a_static_member_by_its_instance() -> None:
    at = desk()
    first, second = static_group(at, "i1", "i2")

    assert at.leave(("", "i2")) == [None]

    assert list(classic(at).members) == [first]
    (error,) = at.leave((second, "i2"))
    assert isinstance(error, UnknownMember)
