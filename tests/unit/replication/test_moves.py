"""Partitions that move to other brokers: begun, replaced, cancelled and finished."""

from dataclasses import replace

from headrace.replication.election import (
    NO_LEADER,
    Partition,
    accept_isr,
    begin_reassignment,
    cancel_reassignment,
    finish_reassignment,
)

HERE = Partition(replicas=(1, 2, 3), leader=1, leader_epoch=5, isr=(1, 2, 3), min_insync_replicas=2)
ALL = {1, 2, 3, 4, 5, 6}


def test_old_replicas_stay_until_all_new_ones_are_in_sync() -> None:
    moving = begin_reassignment(HERE, (4, 5, 3))

    assert moving.replicas == (4, 5, 3, 1, 2)
    assert (set(moving.adding), set(moving.removing)) == ({4, 5}, {1, 2})
    assert finish_reassignment(moving, ALL) == moving
    assert finish_reassignment(accept_isr(moving, (1, 2, 3, 4)), ALL).replicas == (4, 5, 3, 1, 2)


def test_a_move_ends_with_a_new_leader_if_the_old_one_goes() -> None:
    moving = begin_reassignment(HERE, (4, 5, 3))

    moved = finish_reassignment(accept_isr(moving, (1, 2, 3, 4, 5)), ALL)

    assert (moved.replicas, moved.adding, moved.removing) == ((4, 5, 3), (), ())
    assert (moved.leader, moved.leader_epoch, set(moved.isr)) == (4, 6, {3, 4, 5})


def test_a_leader_that_stays_begins_an_epoch_without_those_that_go() -> None:
    moved = finish_reassignment(accept_isr(begin_reassignment(HERE, (1, 4, 5)), (1, 4, 5)), ALL)

    assert (moved.leader, moved.leader_epoch, moved.replicas) == (1, 6, (1, 4, 5))


def test_a_leader_that_nobody_leaves_keeps_its_epoch() -> None:
    moved = finish_reassignment(accept_isr(begin_reassignment(HERE, (1, 2, 3, 4)), (1, 2, 3, 4)), ALL)

    assert (moved.leader, moved.leader_epoch, moved.replicas) == (1, 5, (1, 2, 3, 4))


def test_another_order_of_the_same_brokers_needs_no_move() -> None:
    moved = finish_reassignment(begin_reassignment(HERE, (3, 1, 2)), ALL)

    assert (moved.replicas, moved.leader, moved.leader_epoch) == ((3, 1, 2), 1, 5)


def test_a_cancelled_move_leaves_the_replicas_that_were() -> None:
    stays = cancel_reassignment(accept_isr(begin_reassignment(HERE, (4, 5, 6)), (1, 2, 4)))

    assert (stays.replicas, stays.adding, stays.removing) == ((1, 2, 3), (), ())
    assert (stays.isr, stays.leader, stays.leader_epoch) == ((1, 2), 1, 6)


def test_a_cancelled_move_does_not_count_on_brokers_that_it_takes_away() -> None:
    moving = replace(begin_reassignment(HERE, (4, 5, 6)), leader=4, isr=(4,), elr=(2, 5))

    stays = cancel_reassignment(moving)

    assert (stays.isr, stays.elr) == ((), (2,))


def test_a_move_that_replaces_another_drops_nobody_before_it_ends() -> None:
    first = replace(begin_reassignment(HERE, (4, 5, 6)), leader=4, isr=(4,))

    second = begin_reassignment(first, (1, 2, 3))

    assert set(second.replicas) == {1, 2, 3, 4, 5, 6}
    assert (second.leader, second.isr) == (4, (4,))
    moved = finish_reassignment(accept_isr(second, (1, 2, 3, 4)), ALL)
    assert (moved.replicas, moved.leader, moved.isr) == ((1, 2, 3), 1, (1, 2, 3))


def test_cancelling_the_second_of_two_moves_goes_back_before_the_first() -> None:
    second = begin_reassignment(begin_reassignment(HERE, (4, 5, 6)), (1, 2, 5))

    assert cancel_reassignment(second).replicas == (1, 2, 3)


def test_a_move_ends_without_a_leader_if_none_of_the_new_ones_lives() -> None:
    moving = accept_isr(begin_reassignment(HERE, (4, 5, 6)), (1, 2, 3, 4, 5, 6))

    moved = finish_reassignment(moving, {1, 2, 3})

    assert (moved.leader, moved.last_leader) == (NO_LEADER, 1)
    assert set(moved.isr) == {4, 5, 6}
