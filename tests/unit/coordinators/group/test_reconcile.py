"""One step of a member towards its target, for every state that it can be in."""

from collections.abc import Iterable

import pytest

from headrace.coordinators.group.assignors import Assignment
from headrace.coordinators.group.consumer import ConsumerMember, MemberState
from headrace.coordinators.group.reconcile import reconcile

A, B = b"A" * 16, b"B" * 16
STABLE, UNREVOKED, UNRELEASED = MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED


def some(text: str) -> Assignment:
    """`a0 a1 b0` as an assignment."""
    found: dict[bytes, set[int]] = {}
    for word in text.split():
        found.setdefault(word[0].upper().encode() * 16, set()).add(int(word[1:]))
    return {topic: frozenset(numbers) for topic, numbers in found.items()}


def member(state: MemberState, epoch: int, assigned: str, revoking: str = "") -> ConsumerMember:
    return ConsumerMember(
        member_id="m",
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        assigned=some(assigned),
        revoking=some(revoking),
    )


def step(
    before: ConsumerMember, target: str, *, taken: str = "", owned: str | None = None, target_epoch: int = 9
) -> tuple[MemberState, int, Assignment, Assignment]:
    places: Iterable[tuple[bytes, int]] = (
        (topic, number)
        for text in (some(taken), before.assigned, before.revoking)
        for topic, numbers in text.items()
        for number in numbers
    )
    after = reconcile(
        before,
        target=some(target),
        target_epoch=target_epoch,
        taken=set(places),
        owned=None if owned is None else some(owned),
    )
    assert (after.previous_epoch == before.epoch) == (after.epoch != before.epoch)
    return after.state, after.epoch, after.assigned, after.revoking


def test_a_member_that_has_its_target_does_nothing() -> None:
    before = member(STABLE, 9, "a0")

    assert step(before, "a0") == (STABLE, 9, some("a0"), {})


def test_a_member_that_only_gets_more_gets_it_at_once() -> None:
    assert step(member(STABLE, 8, "a0"), "a0 a1 b0") == (STABLE, 9, some("a0 a1 b0"), {})


def test_a_member_that_keeps_what_it_has_moves_on() -> None:
    assert step(member(STABLE, 8, "a0"), "a0") == (STABLE, 9, some("a0"), {})


def test_what_others_have_is_waited_for() -> None:
    before = member(STABLE, 8, "a0")

    assert step(before, "a0 a1 a2", taken="a1") == (UNRELEASED, 9, some("a0 a2"), {})
    assert step(before, "a0 a1", taken="a1") == (UNRELEASED, 9, some("a0"), {})


def test_who_waits_gets_what_is_free_by_now() -> None:
    before = member(UNRELEASED, 9, "a0")

    assert step(before, "a0 a1 a2", taken="a1 a2") == (UNRELEASED, 9, some("a0"), {})
    assert step(before, "a0 a1 a2", taken="a1") == (UNRELEASED, 9, some("a0 a2"), {})
    assert step(before, "a0 a1 a2") == (STABLE, 9, some("a0 a1 a2"), {})


def test_what_is_not_its_own_any_more_is_given_up_before_anything_is_got() -> None:
    before = member(STABLE, 8, "a0 b0")

    assert step(before, "a0 a1") == (UNREVOKED, 8, some("a0"), some("b0"))
    assert step(before, "a0 a1", owned="a0 b0") == (UNREVOKED, 8, some("a0"), some("b0"))


def test_who_does_not_have_what_it_was_to_give_up_need_not_be_told() -> None:
    assert step(member(STABLE, 8, "a0 b0"), "a0 a1", owned="a0") == (STABLE, 9, some("a0 a1"), {})
    assert step(member(STABLE, 8, "a0 b0"), "", owned="") == (STABLE, 9, {}, {})


@pytest.mark.parametrize("owned", [None, "b0", "a0 b0"])
def test_nothing_moves_until_it_says_that_it_gave_it_up(owned: str | None) -> None:
    before = member(UNREVOKED, 8, "a0", "b0 b1")

    assert step(before, "a0 a1", owned=owned) == (UNREVOKED, 8, some("a0"), some("b0 b1"))


def test_who_gave_it_up_gets_its_target() -> None:
    before = member(UNREVOKED, 8, "a0", "b0")

    assert step(before, "a0 a1", owned="a0") == (STABLE, 9, some("a0 a1"), {})
    assert step(before, "a0 a1", owned="a0", taken="a1") == (UNRELEASED, 9, some("a0"), {})


def test_who_gave_it_up_can_have_it_back() -> None:
    before = member(UNREVOKED, 8, "a0", "b0")

    assert step(before, "a0 b0", owned="a0") == (STABLE, 9, some("a0 b0"), {})


def test_a_target_may_change_while_something_is_given_up() -> None:
    before = member(UNREVOKED, 7, "a0", "b0")

    state, epoch, assigned, revoking = step(before, "a1", owned="a0")

    assert (state, assigned, revoking) == (UNREVOKED, {}, some("a0"))
    assert epoch < 9


def test_who_waits_may_have_to_give_up_what_it_has() -> None:
    before = member(UNRELEASED, 8, "a0")

    assert step(before, "a1", taken="a1", owned="a0") == (UNREVOKED, 8, {}, some("a0"))


def test_a_topic_of_which_nothing_is_left_is_not_mentioned() -> None:
    _, _, assigned, revoking = step(member(STABLE, 8, "a0 b0"), "a0")

    assert assigned.keys() == {A}
    assert revoking.keys() == {B}


def test_topics_that_it_does_not_read_any_more_go_at_once_even_while_others_are_given_up() -> None:
    before = member(UNREVOKED, 8, "a0 b0", "a1")

    after = reconcile(
        before, target=some("a0"), target_epoch=9, taken=set(), owned=some("a0 a1 b0"), subscribed={A}
    )

    assert (after.state, after.epoch) == (UNREVOKED, 8)
    assert (after.assigned, after.revoking) == (some("a0"), some("a1 b0"))
