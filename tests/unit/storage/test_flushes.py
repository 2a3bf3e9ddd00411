"""When logs are flushed."""

from typing import Any

from headrace.storage.flushes import FlushSchedule


class _Log:
    def __init__(self, due_ms: int | None) -> None:
        self.flush_due_ms = due_ms


def log_due(due_ms: int | None) -> Any:
    """Return as much of a log as the schedule looks at."""
    return _Log(due_ms)


def schedule(*logs: Any) -> FlushSchedule:
    flushes = FlushSchedule()
    for log in logs:
        flushes.put(log)
    return flushes


def test_logs_are_flushed_when_they_are_due_the_earliest_first() -> None:
    late, early, never = log_due(20), log_due(10), log_due(None)
    flushes = schedule(late, early, never)
    assert list(flushes.take_due(9)) == []
    assert list(flushes.take_due(20)) == [early, late]
    assert list(flushes.take_due(99)) == []


def test_a_log_that_was_flushed_meanwhile_has_its_next_turn_later() -> None:
    log = log_due(10)
    flushes = schedule(log)
    log.flush_due_ms = 30
    assert list(flushes.take_due(10)) == []
    assert list(flushes.take_due(30)) == [log]


def test_a_log_without_unflushed_records_has_no_turn() -> None:
    log = log_due(10)
    flushes = schedule(log)
    log.flush_due_ms = None
    assert list(flushes.take_due(10)) == []


def test_a_log_has_one_turn_however_often_it_changes() -> None:
    log = log_due(10)
    flushes = schedule(log, log)
    for due_ms in range(11, 1000):
        log.flush_due_ms = due_ms
        flushes.put(log)
    assert len(flushes._queue) == 1
    assert list(flushes.take_due(999)) == [log]


def test_a_log_that_is_due_earlier_than_it_was_is_flushed_once() -> None:
    log = log_due(1000)
    flushes = schedule(log)
    log.flush_due_ms = 0
    flushes.put(log)
    assert list(flushes.take_due(10)) == [log]
    assert list(flushes.take_due(1000)) == []


def test_a_removed_log_is_not_flushed() -> None:
    log = log_due(10)
    flushes = schedule(log)
    flushes.remove(log)
    assert list(flushes.take_due(10)) == []
