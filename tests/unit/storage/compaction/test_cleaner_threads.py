"""Compactions while a log is written, read, truncated or closed."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from headrace.protocol.batch import read_header
from headrace.storage.compaction.cleaner import (
    CompactionStopped,
    Throttle,
    install,
    install_in_steps,
    run_compaction,
)
from headrace.storage.log import Log
from support.logs import COMPACTED, pairs_in, put, read_all
from unit.storage.compactions import files_of, fill, planned, ran
from unit.storage.log_contents import OpenLog


@pytest.fixture
def log(open_log: OpenLog) -> Log:
    return open_log(COMPACTED)


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


@pytest.mark.parametrize("cut", ["truncated", "deleted"])
def test_a_log_that_is_changed_between_two_groups_keeps_those_that_are_in_place(log: Log, cut: str) -> None:
    log.config = replace(COMPACTED, segment_bytes=500)
    for number in range(12):
        put(log, (b"%d" % (number % 6), bytes([number]) * 100))
    log.roll()
    put(log, (b"active", b""))
    compacted = ran(log)
    assert len(compacted.groups) > 2
    expected = pairs_in(log)[-7:]

    steps = install_in_steps(log, compacted)
    next(steps)
    if cut == "truncated":
        log.truncate_to(log.log_end_offset - 1)
        expected.pop()
    else:
        log.delete_oldest_segments(1)
    with pytest.raises(StopIteration) as stop:
        next(steps)

    assert stop.value.value is None
    assert not any(log.directory.glob("*.cleaned"))
    assert pairs_in(log)[-len(expected) :] == expected
