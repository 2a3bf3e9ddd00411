"""Two logs that have parted become one again: what a leader says, and what a follower truncation_offset."""

from bisect import bisect_right

import pytest

from headrace.replication.follower import (
    EpochEnd,
    Position,
    Restart,
    end_of_possible_epochs,
    find_divergence,
    position,
    restart,
    truncation_offset,
)


class Epochs:
    """Epochs by their first offsets, looked up as `storage.epochs` does."""

    def __init__(self, *starts: tuple[int, int]) -> None:
        self._starts = starts

    def at(self, offset: int) -> int:
        return max((epoch for epoch, start in self._starts if start <= offset), default=-1)

    def end_of(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        if epoch == -1 or not self._starts or epoch > self._starts[-1][0]:
            return -1, -1
        after = bisect_right([known for known, _ in self._starts], epoch)
        end = self._starts[after][1] if after < len(self._starts) else log_end_offset
        return (self._starts[after - 1][0] if after else epoch), end


def test_a_follower_says_where_its_log_ends_and_who_wrote_the_last_record() -> None:
    epochs = Epochs((1, 0), (3, 10))

    assert position(epochs, start=0, end=10, leader_epoch=4) == Position(10, 1, 4)
    assert position(epochs, start=0, end=11, leader_epoch=4) == Position(11, 3, 4)


def test_an_empty_log_has_no_last_record() -> None:
    assert position(Epochs(), start=0, end=0, leader_epoch=4) == Position(0, -1, 4)
    assert position(Epochs((2, 7)), start=7, end=7, leader_epoch=4) == Position(7, -1, 4)


def test_a_follower_that_is_only_behind_has_not_parted() -> None:
    leader = Epochs((1, 0), (3, 10))

    assert find_divergence(leader, 20, offset=5, last_epoch=1) is None
    assert find_divergence(leader, 20, offset=10, last_epoch=1) is None
    assert find_divergence(leader, 20, offset=20, last_epoch=3) is None


def test_a_follower_with_more_of_an_epoch_than_its_leader_has_parted_where_that_ended() -> None:
    assert find_divergence(Epochs((1, 0), (3, 10)), 20, offset=14, last_epoch=1) == EpochEnd(1, 10)


def test_a_follower_with_an_epoch_that_its_leader_never_had_has_parted_before_it() -> None:
    assert find_divergence(Epochs((1, 0), (3, 10)), 20, offset=8, last_epoch=2) == EpochEnd(1, 10)


def test_nothing_is_known_of_an_epoch_that_is_yet_to_come() -> None:
    assert find_divergence(Epochs((1, 0)), 20, offset=8, last_epoch=2) == EpochEnd(-1, -1)


@pytest.mark.parametrize(
    ("own", "end", "parted", "kept"),
    [
        (Epochs((1, 0)), 14, EpochEnd(1, 10), 10),  # it has more of the epoch than the leader
        (Epochs((1, 0), (2, 6)), 8, EpochEnd(1, 10), 6),  # it has less of it, and then another one
        (Epochs((0, 0), (4, 6)), 9, EpochEnd(2, 8), 6),  # it never had that epoch
        (Epochs((4, 0)), 9, EpochEnd(2, 8), 0),  # nothing that it has is as old
    ],
)
def test_a_follower_keeps_what_both_have_of_the_epoch(
    own: Epochs, end: int, parted: EpochEnd, kept: int
) -> None:
    assert truncation_offset(own, parted, start=0, end=end) == kept


def test_a_follower_never_goes_back_before_its_start() -> None:
    assert truncation_offset(Epochs((4, 5)), EpochEnd(2, 3), start=5, end=9) == 5


def test_rounds_of_question_and_answer_end_where_the_logs_are_one() -> None:
    """The leader wrote epochs 0, 3, 4; the follower 0, 1, 2, each a part of its own."""
    leader, leader_end = Epochs((0, 0), (3, 5), (4, 8)), 12
    own, end = [(0, 0), (1, 6), (2, 9)], 11
    rounds = 0
    while True:
        asked = position(Epochs(*own), start=0, end=end, leader_epoch=4)
        parted = find_divergence(leader, leader_end, offset=asked.offset, last_epoch=asked.last_epoch)
        if parted is None:
            break
        end = truncation_offset(Epochs(*own), parted, start=0, end=end)
        own = [(epoch, start) for epoch, start in own if start < end]
        rounds += 1

    assert (own, end) == ([(0, 0)], 5)
    assert rounds <= 3


def test_a_follower_past_its_leaders_end_goes_back_to_it() -> None:
    assert restart(30, leader_start=5, leader_end=20) == Restart(20, from_nothing=False)


def test_a_follower_whose_log_ends_before_its_leaders_begins_starts_from_nothing() -> None:
    assert restart(3, leader_start=5, leader_end=20) == Restart(5, from_nothing=True)


def test_a_follower_that_is_in_range_by_now_goes_on() -> None:
    assert restart(5, leader_start=5, leader_end=20) is None
    assert restart(20, leader_start=5, leader_end=20) is None


def test_records_of_an_epoch_after_the_current_one_end_the_log_of_a_follower() -> None:
    epochs = Epochs((1, 0), (3, 10), (90, 15), (91, 18))

    assert end_of_possible_epochs(epochs, leader_epoch=4, end=20) == 15
    assert end_of_possible_epochs(epochs, leader_epoch=90, end=20) == 18
    assert end_of_possible_epochs(epochs, leader_epoch=0, end=20) == 0
    assert end_of_possible_epochs(epochs, leader_epoch=91, end=20) is None
    assert end_of_possible_epochs(epochs, leader_epoch=95, end=20) is None
    assert end_of_possible_epochs(Epochs(), leader_epoch=4, end=0) is None
