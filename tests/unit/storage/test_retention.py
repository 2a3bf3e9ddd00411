"""Which segments go: by age, by size and by the log's start, and never past the high watermark."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.protocol.batch import NO_TIMESTAMP
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.retention import enforce_retention, segments_to_delete
from support.clock import SettableClock
from support.logs import memory_directory, open_test_log, read_all
from support.records import make_batch

HOUR_MS = 3600 * 1000
FOREVER = LogConfig(retention_ms=-1, message_timestamp_after_max_ms=2**62)


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock()


@pytest.fixture
def log(tmp_path: Path, clock: SettableClock) -> Iterator[Log]:
    log = open_test_log(tmp_path / "t-0", FOREVER, now_ms=clock)
    yield log
    log.release()


def append(log: Log, *, age_ms: int = 0, size: int = 100, timestamp: int | None = None) -> None:
    """A batch of one record in a segment of its own."""
    log.roll()
    timestamp = log.now_ms() - age_ms if timestamp is None else timestamp
    log.append(make_batch([bytes(size)], timestamps=timestamp), leader_epoch=0)


def retained(log: Log, *, high_watermark: int | None = None) -> list[int]:
    """Enforce retention; the base offsets of the segments that are left."""
    enforce_retention(log, high_watermark=log.log_end_offset if high_watermark is None else high_watermark)
    return [segment.base_offset for segment in log.segments]


# -- by time -------------------------------------------------------------------------------------


def test_a_segment_goes_once_its_youngest_record_is_older_than_retention_ms(
    log: Log, clock: SettableClock
) -> None:
    log.config = replace(FOREVER, retention_ms=HOUR_MS)
    append(log, age_ms=0)
    append(log, age_ms=-1)

    clock.advance(HOUR_MS)
    assert retained(log) == [0, 1]
    clock.advance(1)
    assert retained(log) == [1]
    assert log.log_start_offset == 1


def test_a_young_segment_protects_all_after_it(log: Log) -> None:
    log.config = replace(FOREVER, retention_ms=HOUR_MS)
    append(log, age_ms=2 * HOUR_MS)
    append(log, age_ms=0)
    append(log, age_ms=2 * HOUR_MS)

    assert retained(log) == [1, 2]


def test_a_record_from_the_future_keeps_its_segment_until_then(log: Log, clock: SettableClock) -> None:
    log.config = replace(FOREVER, retention_ms=HOUR_MS)
    append(log, timestamp=clock.now_ms + 10 * HOUR_MS)
    append(log)

    clock.advance(11 * HOUR_MS)
    assert retained(log) == [0, 1]
    clock.advance(1)
    assert retained(log) == [2]


def test_records_without_a_time_are_as_old_as_their_segment(log: Log, clock: SettableClock) -> None:
    log.config = replace(FOREVER, retention_ms=HOUR_MS)
    append(log, timestamp=NO_TIMESTAMP)
    append(log)

    clock.advance(HOUR_MS)
    assert retained(log) == [0, 1]
    clock.advance(1)
    assert retained(log) == [2]


def test_the_active_segment_is_replaced_by_an_empty_one_when_it_must_go(
    log: Log, clock: SettableClock
) -> None:
    log.config = replace(FOREVER, retention_ms=HOUR_MS)
    append(log)
    append(log)
    clock.advance(HOUR_MS + 1)

    assert retained(log) == [2]
    assert (log.log_start_offset, log.log_end_offset, log.size) == (2, 2, 0)
    clock.advance(10 * HOUR_MS)
    assert enforce_retention(log, high_watermark=2) == 0
    append(log)
    assert len(read_all(log)) == 1


def test_a_retention_of_minus_one_is_for_ever(log: Log, clock: SettableClock) -> None:
    append(log, timestamp=0)
    clock.advance(2**50)
    assert retained(log) == [0]


# -- by size -------------------------------------------------------------------------------------


def test_segments_go_while_what_is_left_is_at_least_the_limit(log: Log) -> None:
    for _ in range(4):
        append(log)
    size = log.segments[0].size
    limits = [(4 * size, 4), (3 * size + 1, 4), (3 * size, 3), (2 * size - 1, 2), (size, 1), (1, 1)]
    for limit, left in limits:
        log.config = replace(FOREVER, retention_bytes=limit)
        assert len(retained(log)) == left


def test_a_limit_of_nothing_empties_the_log(log: Log) -> None:
    append(log)
    append(log)
    log.config = replace(FOREVER, retention_bytes=0)

    assert retained(log) == [2]
    assert log.size == 0


def test_a_large_old_segment_stays_if_the_log_would_be_smaller_than_the_limit_without_it(log: Log) -> None:
    append(log, size=1000)
    append(log, size=10)
    log.config = replace(FOREVER, retention_bytes=500)

    assert retained(log) == [0, 1]


# -- by the log's start, and what holds it back --------------------------------------------------


def test_segments_below_the_start_go_whatever_the_policy(log: Log) -> None:
    for _ in range(4):
        append(log)
    log.config = replace(FOREVER, compact=True, delete=False)
    log.delete_records_before(2)

    assert retained(log) == [2, 3]


def test_a_segment_that_the_start_lies_within_stays(log: Log) -> None:
    log.append(make_batch(3), leader_epoch=0)
    append(log)
    log.delete_records_before(2)

    assert retained(log) == [0, 3]
    assert log.log_start_offset == 2


@pytest.mark.parametrize("high_watermark", range(5))
def test_nothing_at_or_past_the_high_watermark_goes(log: Log, high_watermark: int) -> None:
    for _ in range(4):
        append(log, age_ms=2 * HOUR_MS)
    log.config = replace(FOREVER, retention_ms=HOUR_MS, retention_bytes=0)

    assert retained(log, high_watermark=high_watermark)[0] == high_watermark


def test_a_compacted_topic_keeps_what_is_old_or_too_much(log: Log) -> None:
    for _ in range(3):
        append(log, age_ms=100 * HOUR_MS)
    log.config = replace(FOREVER, compact=True, delete=False, retention_ms=1, retention_bytes=1)

    assert retained(log) == [0, 1, 2]


def test_a_topic_of_both_policies_loses_it(log: Log) -> None:
    for _ in range(3):
        append(log, age_ms=100 * HOUR_MS)
    log.config = replace(FOREVER, compact=True, delete=True, retention_ms=1)

    assert retained(log) == [3]


# -- any history ---------------------------------------------------------------------------------


class Case(NamedTuple):
    segments: list[tuple[int, int]]  # age in hours (None of them below -2, the future) and size
    retention_hours: int
    retention_bytes: int
    delete: bool
    start: int
    high_watermark: int


cases = st.builds(
    Case,
    segments=st.lists(st.tuples(st.integers(-2, 6), st.sampled_from([1, 100, 700])), max_size=8),
    retention_hours=st.integers(-1, 5),
    retention_bytes=st.sampled_from([-1, 0, 200, 500, 1500]),
    delete=st.booleans(),
    start=st.integers(0, 8),
    high_watermark=st.integers(0, 8),
)


@settings(max_examples=150, deadline=None)
@given(case=cases)
def test_any_log_loses_what_a_plain_list_loses(case: Case) -> None:
    with memory_directory() as directory:
        log = open_test_log(Path(directory), FOREVER)
        for age, size in case.segments:
            append(log, age_ms=age * HOUR_MS, size=size)
        count = len(case.segments)
        log.delete_records_before(min(case.start, count))
        log.config = replace(
            FOREVER,
            compact=True,
            delete=case.delete,
            retention_ms=case.retention_hours * HOUR_MS if case.retention_hours >= 0 else -1,
            retention_bytes=case.retention_bytes,
        )
        high_watermark = min(case.high_watermark, count)

        expected = naive_deletions(case, [segment.size for segment in log.segments][:count])
        assert segments_to_delete(log, high_watermark=high_watermark) == expected
        assert enforce_retention(log, high_watermark=high_watermark) == expected
        assert log.segments[0].base_offset == expected
        assert log.log_start_offset == max(min(case.start, count), expected)
        assert log.log_end_offset == count
        assert enforce_retention(log, high_watermark=high_watermark) == 0
        log.release()


def naive_deletions(case: Case, sizes: list[int]) -> int:
    """How many one-record segments go: pop them from a list while any rule says so."""
    left = list(zip(case.segments, sizes, strict=True))
    gone = 0
    while left and gone + 1 <= case.high_watermark:
        (age, _), size = left[0]
        remaining = sum(size for _, size in left) - size
        is_old = case.delete and 0 <= case.retention_hours < age
        is_too_much = case.delete and 0 <= case.retention_bytes <= remaining
        if not (is_old or is_too_much or gone + 1 <= case.start):
            break
        left.pop(0)
        gone += 1
    return gone


def test_a_few_segments_at_a_time_are_all_in_the_end(log: Log) -> None:
    for _ in range(7):
        append(log)
    log.config = replace(FOREVER, retention_bytes=1)

    steps = [enforce_retention(log, high_watermark=log.log_end_offset, max_segments=3) for _ in range(4)]

    assert steps == [3, 3, 0, 0]
    assert [segment.base_offset for segment in log.segments] == [6]
