"""Compaction from plan to installed segments: what one pass keeps, and what it leaves alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from headrace.protocol.records import Record, encode_batch
from headrace.storage.compaction.cleaner import install, plan_compaction
from headrace.storage.config import MAX_INT32
from headrace.storage.log import Log
from support.clock import SettableClock
from support.logs import COMPACTED, compact, open_test_log, pairs_in, put, read_all
from support.records import TIMESTAMP, make_batch, make_marker
from unit.storage.compactions import fill, ran, segment_of
from unit.storage.log_contents import OpenLog


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(COMPACTED)


def test_the_last_value_of_each_key_stays_at_its_offset(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"b", b"2"))
    log.roll()
    put(log, (b"a", b"active"))

    assert compact(log) == 4
    assert pairs_in(log) == [(2, b"a", b"2"), (3, b"b", b"2"), (4, b"a", b"active")]


def test_a_tombstone_goes_once_its_time_is_over_and_not_before(tmp_path: Path) -> None:
    clock = SettableClock()
    log = open_test_log(tmp_path, COMPACTED, now_ms=clock)
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    log.roll()
    put(log, (b"b", b"1"))
    log.roll()

    compact(log)
    clock.advance(COMPACTED.delete_retention_ms - 1)
    compact(log)
    assert pairs_in(log) == [(1, b"a", None), (2, b"b", b"1")]

    clock.advance(1)
    compact(log)
    assert pairs_in(log) == [(2, b"b", b"1")]
    log.release()


def test_a_tombstone_above_a_partial_pass_keeps_its_whole_time(tmp_path: Path) -> None:
    """Its horizon starts with the pass that removes what it deletes: readers met that until then."""
    clock = SettableClock()
    log = open_test_log(tmp_path, COMPACTED, now_ms=clock)
    put(log, (b"a", b"1"))
    put(log, (b"b", b"1"))
    put(log, (b"a", None))
    log.roll()

    first_dirty = compact(log, max_keys=1)
    assert first_dirty == 1
    clock.advance(COMPACTED.delete_retention_ms)
    compact(log, first_dirty_offset=first_dirty)

    assert pairs_in(log) == [(1, b"b", b"1"), (2, b"a", None)]
    log.release()


def test_a_batch_with_more_keys_than_memory_has_room_for_is_compacted_in_parts(log: Log) -> None:
    put(log, *((b"%d" % number, b"old") for number in range(10)))
    put(log, *((b"%d" % number, b"new") for number in range(10)))
    log.roll()

    ends = [first_dirty := 0]
    while first_dirty < log.active.base_offset:
        following = compact(log, first_dirty_offset=first_dirty, max_keys=3)
        assert following is not None
        ends.append(first_dirty := following)

    assert ends == [0, 3, 6, 9, 12, 15, 18, 20]
    assert pairs_in(log) == [(10 + number, b"%d" % number, b"new") for number in range(10)]


def test_segments_above_a_partial_pass_are_not_written_again(log: Log) -> None:
    for key in (b"a", b"b", b"c"):
        put(log, (key, b"1"))
        log.roll()
    untouched = log.segments[1:]

    assert compact(log, max_keys=1) == 1
    assert log.segments[1:] == untouched


def test_an_aborted_record_does_not_hide_an_older_value_though_its_marker_is_in_the_active_segment(
    log: Log,
) -> None:
    put(log, (b"a", b"committed"))
    put(log, (b"a", b"aborted"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll()
    log.append_internal(make_marker(7, commit=False), leader_epoch=0)

    compact(log)
    assert pairs_in(log) == [(0, b"a", b"committed")]


def test_a_transaction_without_an_outcome_is_left_alone(log: Log) -> None:
    put(log, (b"a", b"1"))
    log.roll()
    put(log, (b"a", b"2"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=0)
    log.roll()
    put(log, (b"a", b"3"))
    log.roll()

    assert compact(log) == 1
    assert [value for _, _, value in pairs_in(log)] == [b"1", b"2", b"3"]


def test_records_without_a_key_go_once_a_topic_is_compacted(tmp_path: Path) -> None:
    log = open_test_log(tmp_path, replace(COMPACTED, compact=False, delete=True))
    log.append(_keyless(), leader_epoch=0)
    put(log, (b"a", b"1"))
    log.roll()
    log.config = COMPACTED

    compact(log)
    assert pairs_in(log) == [(1, b"a", b"1")]
    log.release()


def test_a_follower_gap_at_the_end_of_a_segment_is_clean_after_one_pass(log: Log) -> None:
    log.append_as_follower(make_batch(base_offset=0))
    log.roll()
    log.roll()
    log.append_as_follower(make_batch(base_offset=MAX_INT32 + 100))

    end = log.active.base_offset
    assert compact(log) == end
    assert plan_compaction(log, first_dirty_offset=end, up_to_offset=log.log_end_offset) is None


def test_segments_further_apart_than_an_index_can_tell_are_not_merged(log: Log) -> None:
    log.append_as_follower(make_batch(base_offset=0))
    log.roll()
    log.append_as_follower(make_batch(base_offset=MAX_INT32 + 1, timestamps=TIMESTAMP + 1))
    log.roll()
    log.append_as_follower(make_batch(base_offset=MAX_INT32 + 2))

    compact(log)
    assert [segment.base_offset for segment in log.segments] == [0, 1, MAX_INT32 + 2]
    assert len(read_all(log)) == 2  # the first of three is superseded


def test_neighbours_become_one_segment_as_long_as_they_fit(log: Log) -> None:
    for _ in range(4):
        segment_of(log, size=600)

    compacted = ran(log)
    assert [len(group.sources) for group in compacted.groups] == [3, 1]
    install(log, compacted)
    assert [segment.base_offset for segment in log.segments] == [0, 3, 4]


def test_a_pass_that_leaves_nothing_leaves_an_empty_segment_that_can_be_read_over(log: Log) -> None:
    put(log, (b"a", b"1"))
    log.roll()
    put(log, (b"a", b"2"))
    log.roll()
    compact(log, max_keys=1)
    assert pairs_in(log) == [(1, b"a", b"2")]
    assert log.read(0, 1000) == b"".join(read_all(log))


def test_the_age_of_records_without_a_time_survives(log: Log) -> None:
    segment_of(log, size=10, timestamp=-1)
    old = log.segments[0].created_ms

    compact(log)
    assert log.segments[0].youngest_ms == old


def test_no_file_stays_open(log: Log) -> None:
    fill(log)
    before = open_files()
    compact(log)
    read_all(log)
    assert open_files() <= before


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _keyless() -> bytearray:
    return encode_batch([Record(None, b"value", (), TIMESTAMP)])
