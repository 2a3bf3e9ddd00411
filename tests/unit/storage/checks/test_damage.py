"""Damaged closed segments: found by a start, by a check and by `verify`, and repaired from another log."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.protocol.batch import HEADER_SIZE, OFFSET_SIZE
from headrace.storage.checks.damage import Damage, ReadAllowance, SegmentCheck
from headrace.storage.checks.repair import SegmentRepair
from headrace.storage.checks.verify import verify
from headrace.storage.directory import CLEAN_SHUTDOWN, RUNNING, LogDirectory
from headrace.storage.errors import CorruptLog
from headrace.storage.log import Log
from headrace.storage.recovery import open_log as open_any_log
from headrace.storage.retention import enforce_retention
from headrace.storage.seed import plan_seed
from headrace.storage.segment_list import FILE_NAME as SEGMENT_LIST
from samples.partition import CONFIG, facts, written
from support.clock import SettableClock
from support.logs import COMPACTED, compact, open_test_log, put, read_all
from support.records import headers_of, make_batch, split_batches
from unit.storage.directory_contents import CONFIG as LARGE
from unit.storage.directory_contents import ORDERS, TOPIC_ID, OpenDirectory, crash, fill, flip_a_bit


def contents(log: Log) -> dict[str, object]:
    """Return all that follows from the batches, except that a snapshot has one batch of each producer."""
    return {name: fact for name, fact in facts(log).items() if name != "producers"}


def files(log: Log, number: int) -> list[Path]:
    """Return all files of a segment, its snapshot included."""
    return sorted(log.directory.glob(f"{log.segments[number].base_offset:020d}.*"))


def delete_it(log: Log) -> None:
    for path in files(log, 1):
        path.unlink()


def delete_the_first(log: Log) -> None:
    log.segments[0].path.unlink()


def cut_it_at_a_batch(log: Log) -> None:
    path = log.segments[1].path
    os.truncate(path, len(split_batches(path.read_bytes())[0]))


def empty_it(log: Log) -> None:
    os.truncate(log.segments[1].path, 0)


def swap_two(log: Log) -> None:
    first, second = log.segments[1].path, log.segments[2].path
    aside = first.with_name("aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def flip_a_base_offset(log: Log) -> None:
    path = log.segments[1].path
    last = split_batches(path.read_bytes())[-1]
    flip_a_bit(path, path.stat().st_size - len(last) + OFFSET_SIZE - 2)


DAMAGES = [delete_it, delete_the_first, cut_it_at_a_batch, empty_it, swap_two, flip_a_base_offset]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A log that was closed, with a list of its segments."""
    log = written(tmp_path / "logs" / "orders-0")
    log.close()
    return log


@pytest.fixture
def healthy(tmp_path: Path) -> Iterator[Log]:
    """Another replica with the same records."""
    log = written(tmp_path / "other" / "orders-0")
    yield log
    log.release()


def reopen(log: Log, *, clean: bool = True, may_read: int = 10**6) -> Log:
    return open_any_log(
        log.directory,
        CONFIG,
        now_ms=SettableClock(),
        clean=clean,
        recovery_point=log.log_end_offset,
        allowance=ReadAllowance(may_read),
    )


def repair(log: Log, healthy: Log, *, max_bytes: int = 400) -> None:
    """Repair every damaged segment from another log."""
    for damage in list(log.damaged.values()):
        copy = SegmentRepair(log, damage)
        while not copy.is_complete:
            copy.take(healthy.read(copy.next_offset, max_bytes))
        copy.finish()
        copy.install()


def checked(log: Log, number: int) -> Damage | None:
    segment, after = log.segments[number : number + 2]
    return SegmentCheck(segment, after.base_offset, log.listed.entries.get(segment.base_offset)).run()


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_start_finds_damage_and_reads_of_it_fail_and_a_repair_ends_it(
    log: Log, healthy: Log, damage: Callable[[Log], None], clean: bool
) -> None:
    expected = contents(healthy)
    damage(log)

    again = reopen(log, clean=clean)

    assert again.damaged
    assert (again.log_start_offset, again.log_end_offset) == (0, healthy.log_end_offset)
    for each in again.damaged.values():
        with pytest.raises(CorruptLog):
            again.read(each.from_offset, 10_000)
        if each.from_offset:
            before = again.read(0, 10_000)
            assert bytes(before) == bytes(healthy.read(0, 10_000))[: len(before)]
    rest = max(each.end_offset for each in again.damaged.values())
    assert again.read(rest, 10_000) == healthy.read(rest, 10_000)

    repair(again, healthy)

    assert not again.damaged
    assert contents(again) == expected
    assert [path.name for path in log.directory.iterdir() if path.suffix in {".repaired", ".swap"}] == []
    again.close()
    assert not any(report.problems for report in verify(log.directory))
    last = reopen(log)
    assert contents(last) == expected
    assert not last.damaged
    last.release()


def test_only_files_that_were_touched_use_up_what_a_start_may_read(log: Log) -> None:
    flip_a_base_offset(log)

    again = reopen(log, may_read=log.segments[1].size)

    assert list(again.damaged) == [log.segments[1].base_offset]
    again.release()


@pytest.mark.parametrize("damage", DAMAGES)
def test_verify_reports_what_is_missing_or_displaced(log: Log, damage: Callable[[Log], None]) -> None:
    assert not any(report.problems for report in verify(log.directory))
    damage(log)

    assert any(report.problems for report in verify(log.directory))


@pytest.mark.parametrize("damage", [delete_it, cut_it_at_a_batch, swap_two, flip_a_base_offset])
def test_verify_finds_missing_offsets_also_without_a_list(log: Log, damage: Callable[[Log], None]) -> None:
    (log.directory / SEGMENT_LIST).unlink()
    damage(log)

    assert any(report.problems for report in verify(log.directory))


def test_without_a_list_verify_accepts_gaps_of_a_compacted_log(tmp_path: Path) -> None:
    log = open_test_log(tmp_path / "logs" / "orders-0", COMPACTED)
    for number in range(60):
        put(log, (b"%d" % (number % 3), bytes(100)))
    assert compact(log)
    log.close()
    (log.directory / SEGMENT_LIST).unlink()
    assert any("are missing" in problem for report in verify(log.directory) for problem in report.problems)

    (tmp_path / "logs" / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 40\n")

    assert not any(report.problems for report in verify(log.directory))


def test_a_segment_that_rots_is_found_by_a_check(log: Log, healthy: Log) -> None:
    path = log.segments[1].path
    before = path.stat()
    batches = split_batches(path.read_bytes())
    flip_a_bit(path, len(batches[0]) + HEADER_SIZE + 3)  # in the records of the second batch
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = reopen(log)
    assert not again.damaged

    assert checked(again, 0) is None
    damage = checked(again, 1)
    assert damage is not None
    again.note_damage(damage)

    assert damage.from_offset == headers_of(batches[1])[0].base_offset
    assert "checksum" in str(damage)
    assert read_upto(again, damage.from_offset) == read_upto(healthy, damage.from_offset)
    repair(again, healthy)
    assert contents(again) == contents(healthy)
    again.release()


def read_upto(log: Log, end: int) -> bytes:
    found, offset = b"", 0
    while offset < end:
        data = bytes(log.read(offset, 10_000, max_offset=end))
        found, offset = found + data, headers_of(data)[-1].next_offset
    return found


def test_a_read_of_an_invalid_batch_makes_its_segment_suspect(log: Log) -> None:
    segment = log.segments[1]
    before = segment.path.stat()
    first = split_batches(segment.path.read_bytes())[0]
    flip_a_bit(segment.path, len(first) + OFFSET_SIZE)  # the length of the second batch
    os.utime(segment.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    again = reopen(log)

    after = headers_of(again.read(segment.base_offset, 400))[-1].next_offset
    with pytest.raises(CorruptLog):
        again.read(after, 400)

    assert again.suspects == {segment.base_offset}
    again.release()


def test_a_closed_segment_that_cannot_be_opened_is_suspect_and_the_log_stays_online(log: Log) -> None:
    again = reopen(log)
    again.segments[1].path.unlink()

    with pytest.raises(CorruptLog):
        again.read(again.segments[1].base_offset, 400)

    assert again.suspects == {again.segments[1].base_offset}
    assert again.offline is None
    damage = checked(again, 1)
    assert damage is not None
    assert damage.from_offset == again.segments[1].base_offset
    again.release()


def test_damage_of_the_active_segment_closes_it(log: Log, healthy: Log) -> None:
    again = reopen(log)
    active = again.active.base_offset
    flip_a_bit(again.active.path, HEADER_SIZE + 1)

    again.note_damage(Damage(again.active.path, active, active, 0, "for a test"))

    assert again.damaged[active].end_offset == again.active.base_offset == again.log_end_offset
    repair(again, healthy)
    assert read_all(again) == read_all(healthy)
    again.release()


def test_a_copy_with_other_times_is_no_damage(log: Log, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "orders-0"
    shutil.copytree(log.directory, copy, copy_function=shutil.copy)

    again = open_test_log(copy, CONFIG, clean=True)

    assert not again.damaged
    assert contents(again)["end"] == log.log_end_offset
    again.release()


def test_missing_segments_below_the_log_start_offset_are_no_damage(log: Log) -> None:
    delete_the_first(log)

    again = open_test_log(log.directory, CONFIG, clean=True, log_start_offset=log.segments[1].base_offset)

    assert not again.damaged
    again.release()


def test_a_damaged_log_is_neither_compacted_nor_linked_from_the_damage_on(log: Log) -> None:
    delete_it(log)
    again = reopen(log)

    plan = plan_seed(again, again.log_end_offset)

    assert plan.base_offsets == (0,)
    assert compact(again, first_dirty_offset=5) == 5
    again.release()


def test_retention_ends_the_damage_of_deleted_segments(log: Log) -> None:
    delete_it(log)
    again = reopen(log)

    again.delete_records_before(again.segments[2].base_offset)
    enforce_retention(again, high_watermark=again.log_end_offset)

    assert not again.damaged
    assert again.segments[0].base_offset == again.log_start_offset
    again.release()
    last = reopen(log)
    assert not last.damaged
    last.release()


def test_the_end_of_a_log_without_its_newest_segments_is_that_of_the_last_one_left(log: Log) -> None:
    for path in files(log, -1) + files(log, -2):
        path.unlink()

    again = reopen(log)

    assert not again.damaged
    assert again.log_end_offset == log.segments[-2].base_offset
    again.append(make_batch(), leader_epoch=9)
    again.close()
    last = reopen(log)
    assert not last.damaged
    last.release()


def test_a_directory_that_kafka_has_closed_is_opened_without_lists(
    open_directory: OpenDirectory, path: Path
) -> None:
    log = fill_and_close(open_directory())
    log.segments[1].path.unlink()  # as retention and compaction of Kafka do
    (path / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":7}')

    directory = open_directory()

    assert not directory.logs[ORDERS].damaged
    assert not (log.directory / SEGMENT_LIST).exists()


def test_a_directory_that_kafka_has_left_in_a_crash_is_opened_without_lists(
    open_directory: OpenDirectory, path: Path
) -> None:
    log = fill_and_close(open_directory())
    log.segments[1].path.unlink()
    (path / CLEAN_SHUTDOWN).unlink()

    assert not open_directory().logs[ORDERS].damaged


def test_lists_count_after_a_crash_of_this_version(open_directory: OpenDirectory, path: Path) -> None:
    log = fill_and_close(open_directory())
    crash(open_directory())
    assert (path / RUNNING).exists()
    log.segments[1].path.unlink()

    assert list(open_directory().logs[ORDERS].damaged) == [log.segments[1].base_offset]


def fill_and_close(directory: LogDirectory) -> Log:
    log = directory.create(ORDERS, TOPIC_ID, LARGE)
    fill(log)
    directory.close()
    assert len(log.segments) > 2
    return log
