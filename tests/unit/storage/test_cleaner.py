"""Compaction from plan to installed segments: what it leaves alone, how it stops, and what a crash leaves."""

import os
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.protocol.batch import build_batch, read_header
from headrace.protocol.compression import Compression
from headrace.protocol.errors import KafkaError
from headrace.protocol.records import Record, encode_batch, raw_records
from headrace.protocol.varint import encode_varint
from headrace.storage.cleaner import (
    Compacted,
    CompactionStopped,
    Plan,
    Throttle,
    install,
    plan_compaction,
    run_compaction,
)
from headrace.storage.config import MAX_INT32
from headrace.storage.errors import CorruptLog, LogOffline
from headrace.storage.inspection import MAX_RECORDS
from headrace.storage.log import Log
from headrace.testing.clock import SettableClock
from headrace.testing.logs import COMPACTED, compact, open_test_log, pairs_in, put, read_all
from headrace.testing.records import TIMESTAMP, headers_of, make_batch, make_marker

Files = dict[str, bytes]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_test_log(tmp_path / "t-0", COMPACTED)
    yield log
    log.release()


def fill(log: Log) -> None:
    """Three closed segments over keys a to c, a transaction that was aborted, and an active segment."""
    for number in range(3):
        put(log, (b"a", b"a%d" % number), (b"b", b"b%d" % number))
        put(
            log, (b"c", b"aborted"), transactional=True, producer_id=7, producer_epoch=0, base_sequence=number
        )
        put(log, (b"c", b"c%d" % number))
        log.append_internal(make_marker(7, commit=False), leader_epoch=0)
        log.roll()
    put(log, (b"a", b"active"))


def planned(log: Log, **changes: int) -> Plan:
    plan = plan_compaction(log, **{"first_dirty_offset": 0, "up_to_offset": log.log_end_offset, **changes})
    assert plan is not None
    return plan


def ran(log: Log) -> Compacted:
    return run_compaction(planned(log), max_keys=1000, stop=lambda: False)


def files_of(log: Log) -> Files:
    return {path.name: path.read_bytes() for path in sorted(log.directory.iterdir())}


def segment_of(log: Log, *, size: int, timestamp: int = TIMESTAMP) -> None:
    """A closed segment of roughly `size` bytes."""
    put(log, (b"k", bytes(size)), timestamp=timestamp)
    log.roll()


# -- what one pass does --------------------------------------------------------------------------


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


# -- meanwhile -----------------------------------------------------------------------------------


def test_appends_and_reads_go_on_between_plan_and_install(log: Log) -> None:
    fill(log)
    plan = planned(log)
    read = log.read(0, 1)
    put(log, (b"d", b"while planned"))
    compacted = run_compaction(plan, max_keys=1000, stop=lambda: False)
    log.read(read_header(read).next_offset, 1)
    put(log, (b"e", b"while compacted"))
    log.roll()
    put(log, (b"f", b"in a new segment"))

    assert install(log, compacted) == plan.end_offset == 15
    assert [(key, value) for _, key, value in pairs_in(log)] == [
        (b"a", b"a2"),
        (b"b", b"b2"),
        (b"c", b"c2"),
        (b"a", b"active"),
        (b"d", b"while planned"),
        (b"e", b"while compacted"),
        (b"f", b"in a new segment"),
    ]


def test_a_compaction_in_one_thread_and_flushes_in_another_disturb_nobody(log: Log) -> None:
    log.config = replace(COMPACTED, segment_bytes=4000)
    stopping = threading.Event()

    def flush_again_and_again() -> int:
        count = 0
        while not stopping.is_set():
            log.flush()
            count += 1
        return count

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(2) as pool:
            flushes = pool.submit(flush_again_and_again)
            try:
                for number in range(60):
                    put(log, *((b"%d" % key, b"%d" % number) for key in range(20)))
                    log.roll()
                    compacting = pool.submit(run_compaction, planned(log), max_keys=100, stop=lambda: False)
                    put(log, (b"another", b"meanwhile"))
                    read_all(log)
                    install(log, compacting.result())
                    if number % 20 == 19:
                        log.delete_oldest_segments(1)
            finally:
                stopping.set()
            assert flushes.result() > 0
    finally:
        sys.setswitchinterval(interval)
    assert log.offline is None
    log.flush()
    assert log.recovery_point == log.log_end_offset


def test_the_work_is_paced_by_bytes(log: Log) -> None:
    fill(log)
    slept: list[float] = []
    throttle = Throttle(1, clock=lambda: 0, sleep=slept.append)

    run_compaction(planned(log), max_keys=1000, stop=lambda: False, throttle=throttle)
    closed = sum(segment.size for segment in log.segments[:-1])
    assert slept[-1] == 2 * closed  # once for the keys, once for the copy; nobody moves the clock


def test_a_compaction_can_be_stopped_at_every_step_and_leaves_the_log_as_it_was(log: Log) -> None:
    fill(log)
    before = files_of(log)
    asked = stopping_at(log, None)
    assert asked > 20

    for step in range(asked):
        with pytest.raises(CompactionStopped):
            stopping_at(log, step)
        assert files_of(log) == before


def stopping_at(log: Log, step: int | None) -> int:
    """Run a compaction that is told to stop when it asks for the `step`th time; say how often it asked."""
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked - 1 == step

    compacted = run_compaction(planned(log), max_keys=1000, stop=stop)
    for path in log.directory.glob("*.cleaned"):
        path.unlink()
    assert compacted.end_offset == 15
    return asked


def truncate_within_a_compacted_segment(log: Log) -> None:
    log.truncate_to(12)


def truncate_and_write_again(log: Log) -> None:
    log.truncate_to(12)
    put(log, (b"c", b"another"))
    log.roll()
    put(log, (b"c", b"yet another"))


LOSSES: list[Callable[[Log], None]] = [
    truncate_within_a_compacted_segment,
    truncate_and_write_again,
    lambda log: log.truncate_to(3),
    lambda log: log.truncate_fully(100),
    lambda log: log.delete_oldest_segments(1),
    lambda log: log.delete_oldest_segments(4),
]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_log_that_loses_bytes_before_install_keeps_what_it_has(
    log: Log, lose: Callable[[Log], None]
) -> None:
    fill(log)
    compacted = ran(log)
    lose(log)
    left = read_all(log)

    assert install(log, compacted) is None
    assert read_all(log) == left
    assert not list(log.directory.glob("*.cleaned"))


@pytest.mark.parametrize("lose", LOSSES)
@pytest.mark.parametrize("step", [0, 5, 12, 19])
def test_a_log_that_loses_bytes_while_it_is_compacted_stops_that(
    log: Log, lose: Callable[[Log], None], step: int
) -> None:
    fill(log)
    plan = planned(log)
    asked = 0
    left: list[bytes] = []

    def stop() -> bool:
        nonlocal asked, left
        asked += 1
        if asked - 1 == step:
            lose(log)
            left = read_all(log)
        return False

    with pytest.raises(CompactionStopped):
        run_compaction(plan, max_keys=1000, stop=stop)
    assert read_all(log) == left
    assert not list(log.directory.glob("*.cleaned"))


# -- damage --------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", Compression)
def test_a_batch_that_cannot_be_read_is_kept_and_logged_once(
    log: Log, compression: Compression, caplog: pytest.LogCaptureFixture
) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    log.append_internal(_undecodable(compression), leader_epoch=0)
    put(log, (b"a", b"2"))
    log.roll()
    unreadable = read_all(log)[1]

    clean_to = compact(log)
    put(log, (b"b", b"2"))
    log.roll()
    compact(log, first_dirty_offset=clean_to or 0)

    kept, *others = read_all(log)  # both keys of the first batch were written again
    assert kept == unreadable
    assert [headers_of(each)[0].base_offset for each in others] == [3, 4]
    where = f"offsets 2 to 2 ({log.segments[0].path}, byte 79)"
    why = why_unreadable(compression)
    assert caplog.messages == [f"compaction keeps the batch at {where}, whose records cannot be read: {why}"]


def why_unreadable(compression: Compression) -> str:
    data = _undecodable(compression)
    with pytest.raises(KafkaError) as unreadable:
        list(raw_records(data, read_header(data)))
    return str(unreadable.value)


def test_a_batch_of_more_records_than_memory_allows_is_kept(log: Log) -> None:
    count = MAX_RECORDS + 1
    body = b"".join(_smallest_record(number) for number in range(count))
    log.config = replace(log.config, compact=False, max_message_bytes=2**22, segment_bytes=2**22)
    log.append(
        build_batch(
            body,
            base_offset=0,
            last_offset_delta=count - 1,
            records_count=count,
            base_timestamp=TIMESTAMP,
            max_timestamp=TIMESTAMP,
        ),
        leader_epoch=0,
    )
    log.roll()
    before = read_all(log)

    compact(log)

    assert read_all(log) == before


def _smallest_record(number: int) -> bytes:
    body = b"\0\0" + encode_varint(number) + b"\x00\x01\x00"  # an empty key and no value
    return encode_varint(len(body)) + body


def test_a_flipped_bit_is_reported_and_not_hidden_under_a_new_checksum(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    position = log.active.size
    put(log, (b"a", b"2"), (b"c", b"value"))
    log.roll()
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[data.index(b"value")] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptLog, match="checksum") as damage:
        run_compaction(planned(log), max_keys=1000, stop=lambda: False)
    assert (damage.value.path, damage.value.position) == (path, position)
    assert path.read_bytes() == data


def test_an_io_error_while_segments_are_swapped_takes_the_log_offline(log: Log) -> None:
    fill(log)
    compacted = ran(log)
    in_the_way = log.directory / "00000000000000000000.log.swap"
    in_the_way.mkdir()

    with pytest.raises(LogOffline, match="could not compact"):
        install(log, compacted)
    with pytest.raises(LogOffline):
        log.read(0, 1)

    in_the_way.rmdir()
    reopened = open_test_log(log.directory, COMPACTED)
    assert committed(reopened) == {b"a": b"active", b"b": b"b2", b"c": b"c2"}
    reopened.release()


# -- crashes -------------------------------------------------------------------------------------


@contextmanager
def copied_at_every_step(
    directory: Path, copies: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[Path]]:
    """Copies of `directory` as it was before each rename and each removal, and at the end."""
    taken: list[Path] = []

    def take() -> None:
        taken.append(copies / str(len(taken)))
        shutil.copytree(directory, taken[-1])

    def replace_after_copy(source: Path, target: Path) -> None:
        take()
        Path(source).rename(target)

    def unlink_after_copy(path: Path, *, dir_fd: int | None = None) -> None:
        take()
        os.remove(path, dir_fd=dir_fd)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace_after_copy)
        patch.setattr(os, "unlink", unlink_after_copy)
        yield taken
    take()


def committed(log: Log) -> dict[bytes | None, bytes | None]:
    """What a reader of committed records ends up with; the transactions of `fill` are all aborted."""
    aborted = {
        offset
        for batch in read_all(log)
        if (header := read_header(batch)).is_transactional and not header.is_control
        for txn in log.aborted_transactions(header.base_offset, header.next_offset)
        if txn.producer_id == header.producer_id
        for offset in range(header.base_offset, header.next_offset)
    }
    return {key: value for offset, key, value in pairs_in(log) if offset not in aborted}


def test_a_crash_at_any_step_of_installing_leaves_old_or_new_segments_and_loses_no_value(
    log: Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one more crash at any step of the opening after it."""
    log.config = replace(COMPACTED, segment_bytes=700)  # two groups
    fill(log)
    old = pairs_in(log)
    aborted_before = log.aborted_transactions(0, 15)
    compacted = ran(log)
    assert len(compacted.groups) == 2
    with copied_at_every_step(log.directory, tmp_path / "first", monkeypatch) as crashes:
        install(log, compacted)
    new = pairs_in(log)
    values = committed(log)
    aborted_after = log.aborted_transactions(0, 15)
    outcomes = set()

    assert len(crashes) > 20
    for crash in crashes:
        before_recovery = tmp_path / "second" / crash.name
        with copied_at_every_step(crash, before_recovery, monkeypatch) as second_crashes:
            open_test_log(crash, COMPACTED, recovery_point=16).release()
        for copy in [crash, *second_crashes]:
            reopened = open_test_log(copy, COMPACTED, recovery_point=16)
            found = pairs_in(reopened)
            assert set(new) <= set(found) <= set(old)
            assert committed(reopened) == values
            assert set(aborted_after) <= set(reopened.aborted_transactions(0, 15)) <= set(aborted_before)
            assert not [path for path in copy.iterdir() if path.suffix in {".cleaned", ".swap"}]
            outcomes.add(tuple(found))
            reopened.release()
    assert {tuple(old), tuple(new)} <= outcomes


# -- what there is to do -------------------------------------------------------------------------


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


def _keyless() -> bytearray:
    return encode_batch([Record(None, b"value", (), TIMESTAMP)])


def _undecodable(compression: Compression) -> bytearray:
    return build_batch(
        b"\xff" * 40,
        base_offset=0,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
        compression=compression,
    )


class Time:
    """A clock that its own sleeps move, each by a little more than asked for."""

    def __init__(self, late: float = 0) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._late = late

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds + (self._late if seconds else 0)


def throttle_at(rate: float, time: Time) -> Throttle:
    return Throttle(rate, clock=time.clock, sleep=time.sleep)


@pytest.mark.parametrize("size", [1, 100, 5_000, 1_000_000])
def test_work_takes_as_long_as_its_bytes_at_the_rate(size: int) -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(2_000_000 // size):
        throttle.spend(size)

    assert time.now - 1000 == pytest.approx(2, abs=0.006)


def test_small_pieces_are_slept_off_together() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(100):
        throttle.spend(1000)

    assert [seconds for seconds in time.slept if seconds] == [pytest.approx(0.006)] * 16


def test_every_piece_lets_other_threads_run() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(10):
        throttle.spend(1)

    assert time.slept == [0] * 10


def test_work_that_is_slow_by_itself_is_not_slowed_down() -> None:
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(10):
        time.now += 0.01
        throttle.spend(9_000)

    assert time.slept == [0] * 10


def test_the_time_that_work_takes_counts() -> None:
    """Half the rate's time for the work, half for sleeping."""
    time = Time()
    throttle = throttle_at(1_000_000, time)
    for _ in range(100):
        throttle.spend(20_000)
        time.now += 0.01

    assert time.now - 1000 == pytest.approx(2, abs=0.011)


def test_an_idle_hour_is_not_saved_up_for_a_burst() -> None:
    time = Time()
    throttle = throttle_at(1000, time)
    time.now += 3600
    start = time.now
    for _ in range(5):
        throttle.spend(1000)

    assert time.now - start == pytest.approx(5, abs=0.101)


def test_sleeps_that_take_too_long_are_made_up_for() -> None:
    time = Time(late=0.001)
    throttle = throttle_at(1_000_000, time)
    for _ in range(1000):
        throttle.spend(1000)

    assert time.now - 1000 == pytest.approx(1, abs=0.006)
