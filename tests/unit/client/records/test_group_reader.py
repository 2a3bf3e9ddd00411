"""When a member of a group has read everything."""

from headrace.client.records.group_reader import IDLE_AFTER_S, Ends
from headrace.protocol.ids import TopicPartition

ONE, TWO = TopicPartition("orders", 1), TopicPartition("orders", 2)


def test_before_the_first_assignment_nothing_is_at_its_end() -> None:
    assert not Ends(0.0, incremental=False).all_reached(now_s=0.0)
    assert not Ends(0.0, incremental=True).all_reached(now_s=0.0)


def test_every_assigned_partition_has_to_come_to_its_end() -> None:
    ends = Ends(0.0, incremental=False)
    ends.assigned([ONE, TWO])
    ends.reached(ONE)
    assert not ends.all_reached(now_s=0.0)
    ends.reached(TWO)
    assert ends.all_reached(now_s=0.0)


def test_a_member_to_whom_nothing_falls_is_at_the_end() -> None:
    ends = Ends(0.0, incremental=False)
    ends.assigned([])
    assert ends.all_reached(now_s=0.0)


def test_a_member_that_is_never_told_of_an_assignment_is_idle_after_a_while() -> None:
    ends = Ends(100.0, incremental=True)
    assert not ends.all_reached(now_s=99.0 + IDLE_AFTER_S)
    assert ends.all_reached(now_s=100.0 + IDLE_AFTER_S)


def test_a_classic_rebalance_takes_everything_away_and_is_not_the_end() -> None:
    ends = Ends(0.0, incremental=False)
    ends.assigned([ONE])
    ends.revoked([ONE])
    assert not ends.all_reached(now_s=1.0)
    ends.assigned([TWO])
    assert not ends.all_reached(now_s=1.0)
    ends.reached(TWO)
    assert ends.all_reached(now_s=1.0)


def test_an_incremental_rebalance_leaves_the_rest_to_be_read() -> None:
    ends = Ends(0.0, incremental=True)
    ends.assigned([ONE, TWO])
    ends.reached(TWO)
    ends.revoked([ONE])
    assert ends.all_reached(now_s=1.0)


def test_a_partition_that_comes_back_is_read_again() -> None:
    ends = Ends(0.0, incremental=False)
    ends.assigned([ONE])
    ends.reached(ONE)
    ends.revoked([ONE])
    ends.assigned([ONE])
    assert not ends.all_reached(now_s=1.0)


def test_while_more_may_be_assigned_the_end_of_what_there_is_is_not_the_end() -> None:
    ends = Ends(100.0, incremental=True, more_to_come=True)
    ends.assigned([ONE])
    ends.reached(ONE)
    assert not ends.all_reached(now_s=101.0)
    ends.assigned([TWO])
    assert not ends.all_reached(now_s=100.0 + IDLE_AFTER_S)
    ends.reached(TWO)
    assert ends.all_reached(now_s=100.0 + IDLE_AFTER_S)
