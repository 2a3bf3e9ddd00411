"""Which segments a compaction takes, and when one is due."""

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.storage.compaction.cleaner import plan_compaction
from headrace.storage.log import Log
from support.clock import SettableClock
from support.logs import COMPACTED, open_test_log, put
from unit.storage.compactions import planned, segment_of
from unit.storage.log_contents import OpenLog


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(COMPACTED)


def test_nothing_to_do_in_a_log_with_one_segment(log: Log) -> None:
    put(log, (b"a", b"1"))
    assert plan_compaction(log, first_dirty_offset=0, up_to_offset=1) is None


def test_the_dirty_ratio_is_that_of_bytes_and_must_be_exceeded(log: Log) -> None:
    for _ in range(4):
        segment_of(log, size=100)

    assert planned(log).dirty_ratio == 1
    half = planned(log, first_dirty_offset=2)
    assert half.dirty_ratio == 0.5
    assert not half.is_worth_it
    assert planned(log, first_dirty_offset=1).is_worth_it
    assert plan_compaction(log, first_dirty_offset=4, up_to_offset=4) is None


def test_a_segment_that_reaches_past_the_stable_offset_is_left_out(log: Log) -> None:
    for _ in range(3):
        segment_of(log, size=100)

    assert planned(log, up_to_offset=2).end_offset == 2
    assert plan_compaction(log, first_dirty_offset=0, up_to_offset=0) is None
    assert plan_compaction(log, first_dirty_offset=2, up_to_offset=2) is None


def test_a_segment_with_a_record_younger_than_the_minimum_lag_and_all_after_it_are_left_out(log: Log) -> None:
    log.config = replace(COMPACTED, min_compaction_lag_ms=1000)
    now = log.now_ms()
    segment_of(log, size=10, timestamp=now - 1001)
    segment_of(log, size=10, timestamp=now - 1000)
    segment_of(log, size=10, timestamp=now - 1001)

    assert planned(log).end_offset == 1


def test_the_minimum_lag_of_records_without_a_time_counts_from_their_segment(tmp_path: Path) -> None:
    clock = SettableClock()
    log = open_test_log(tmp_path, replace(COMPACTED, min_compaction_lag_ms=1000), now_ms=clock)
    segment_of(log, size=10, timestamp=-1)

    clock.advance(1000)
    assert plan_compaction(log, first_dirty_offset=0, up_to_offset=1) is None
    clock.advance(1)
    assert planned(log).end_offset == 1
    log.release()


def test_a_record_that_waited_for_longer_than_the_maximum_lag_makes_a_pass_worth_it(log: Log) -> None:
    log.config = replace(COMPACTED, max_compaction_lag_ms=1000, min_cleanable_dirty_ratio=1)
    now = log.now_ms()
    segment_of(log, size=10, timestamp=now - 5000)
    segment_of(log, size=10, timestamp=now - 1001)
    segment_of(log, size=10, timestamp=now - 1000)
    segment_of(log, size=10, timestamp=-1)

    assert planned(log).is_worth_it
    assert planned(log, first_dirty_offset=1).is_worth_it
    assert not planned(log, first_dirty_offset=2).is_worth_it
    assert not planned(log, first_dirty_offset=3).is_worth_it


@pytest.mark.parametrize("stale", [-1, 1, 6, 1000])
def test_a_first_dirty_offset_of_another_life_of_the_log_counts_as_none(log: Log, stale: int) -> None:
    """Below the first segment, or past the end."""
    for _ in range(5):
        segment_of(log, size=10)
    log.delete_oldest_segments(2)

    assert planned(log, first_dirty_offset=stale).first_dirty_offset == 2
