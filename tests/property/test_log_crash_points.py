"""A crash before any single change of a file, in every operation: the log opens, and nothing is half done."""

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.protocol.batch import read_batch
from headrace.storage.log import Log
from headrace.storage.new_log import new_log
from headrace.storage.open_files import OpenFiles
from samples.partition import CONFIG, facts, written
from support.clock import SettableClock
from support.logs import memory_directory, one_open_file, open_test_log, read_all
from support.records import make_batch

CHANGES = [(os, name) for name in ("pwrite", "truncate", "unlink", "replace", "open")] + [(io, "open")]


class Crashed(BaseException):
    """The process is gone: nothing catches this."""


class CrashPoint:
    """Lets so many changes of files happen, and then none."""

    def __init__(self, patch: pytest.MonkeyPatch, changes: int) -> None:
        self.left = changes
        for module, name in CHANGES:
            patch.setattr(module, name, self._counting(getattr(module, name)))

    def _counting(self, change: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            if self.left == 0:
                raise Crashed
            self.left -= 1
            return change(*arguments, **options)

        return counted


def crashes(
    directory: Path, act: Callable[[Log], object], *, files: Callable[[], OpenFiles] = one_open_file
) -> Iterator[tuple[int, list[bytes], Log]]:
    """What was flushed, the batches before, and the log opened again, for a crash at every point of `act`."""
    for changes in range(10_000):
        log = written(directory / str(changes), files=files())
        log.flush()
        before, flushed = read_all(log), log.recovery_point
        with pytest.MonkeyPatch.context() as patch:
            CrashPoint(patch, changes)
            try:
                act(log)
            except Crashed:
                finished = False
            else:
                finished = True
        log.release()
        yield flushed, before, log
        if finished:
            return


def last_writes(log: Log) -> dict[int, object]:
    """What a snapshot keeps of each producer."""
    return {
        state.producer_id: (state.epoch, [*state.recent][-1][:4], state.txn_first_offset)
        for state in log.producers
    }


def opened_again(log: Log, recovery_point: int) -> tuple[list[bytes], Log]:
    """The log after the crash; all that is derived from its batches is as a follower of them has it."""
    again = open_test_log(log.directory, CONFIG, recovery_point=recovery_point)
    assert not again.damaged
    batches = read_all(again)
    copy = open_test_log(log.directory.with_name(f"{log.directory.name}-copy"), CONFIG)
    if batches:
        copy.truncate_fully(again.log_start_offset)
    for batch in batches:
        copy.append_as_follower(batch)
    if again.log_start_offset == 0:
        theirs, ours = facts(copy), facts(again)
        for name in ("batches", "epochs", "aborted", "youngest", "stable"):
            assert ours[name] == theirs[name], name
        assert last_writes(again) == last_writes(copy)
    copy.release()
    again.append(make_batch([b"life goes on"]), leader_epoch=99)
    assert read_all(again)[:-1] == batches
    return batches, again


@pytest.fixture
def directory() -> Iterator[Path]:
    with memory_directory() as path:
        yield Path(path)


def many_appends(log: Log) -> None:
    for number in range(8):
        log.append(make_batch([bytes([number]) * 200]), leader_epoch=10 + number)


@pytest.mark.parametrize("act", [many_appends, Log.roll, Log.close, Log.flush], ids=lambda act: act.__name__)
@pytest.mark.parametrize("files", [one_open_file, OpenFiles], ids=["one_file", "all_files"])
def test_what_is_added_is_there_up_to_a_point(
    directory: Path, act: Callable[[Log], object], files: Callable[[], OpenFiles]
) -> None:
    for flushed, before, log in crashes(directory, act, files=files):
        batches, again = opened_again(log, flushed)
        assert batches[: len(before)] == before
        again.release()


def test_the_first_append_of_a_new_log(directory: Path) -> None:
    for changes in range(10_000):
        log = new_log(directory / str(changes), bytes(range(16)), CONFIG, now_ms=SettableClock())
        log.begin_epoch(4)
        with pytest.MonkeyPatch.context() as patch:
            CrashPoint(patch, changes)
            try:
                log.append(make_batch([b"first"]), leader_epoch=4)
            except Crashed:
                finished = False
            else:
                finished = True
        log.release()
        batches, again = opened_again(log, 0)
        assert len(batches) == 1 or not finished
        again.release()
        if finished:
            return


@pytest.mark.parametrize("offset", [0, 1, 9, 17, 30, 40])
@pytest.mark.parametrize("act", [Log.truncate_to, Log.truncate_fully], ids=lambda act: act.__name__)
def test_what_is_cut_off_goes_from_the_end(
    directory: Path, act: Callable[[Log, int], None], offset: int
) -> None:
    """Whoever cuts below the recovery point lowers it first, as the log directory does."""
    for flushed, before, log in crashes(directory, lambda log: act(log, offset)):
        batches, again = opened_again(log, min(flushed, offset if act is Log.truncate_to else 0))
        assert batches == before[: len(batches)]
        kept = [batch for batch in before if read_batch(batch).last_offset < offset]
        assert len(batches) >= len(kept) or act is Log.truncate_fully
        again.release()


@pytest.mark.parametrize("offset", [1, 17, 30])
def test_what_is_cut_off_stays_in_a_log_that_shares_the_files(directory: Path, offset: int) -> None:
    for flushed, before, log in crashes(directory, lambda log: _link_and_truncate(log, offset)):
        linked = directory / f"{log.directory.name}-linked"
        batches, again = opened_again(log, min(flushed, offset))
        assert batches == before[: len(batches)]
        other = open_test_log(linked, CONFIG)
        assert read_all(other) == before
        other.release()
        again.release()


def _link_and_truncate(log: Log, offset: int) -> None:
    """Link all segments into another log, as seeding does with closed ones, and truncate the first log."""
    linked = log.directory.with_name(f"{log.directory.name}-linked")
    linked.mkdir()
    for segment in log.segments:
        os.link(segment.path, linked / segment.path.name)
    log.truncate_to(offset)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_what_is_deleted_goes_from_the_start(directory: Path, count: int) -> None:
    for flushed, before, log in crashes(directory, lambda log: log.delete_oldest_segments(count)):
        batches, again = opened_again(log, flushed)
        assert batches == before[len(before) - len(batches) :]
        again.release()


def test_an_opening_that_is_interrupted_can_be_repeated(directory: Path) -> None:
    log = written(directory / "whole")
    expected = facts(log)
    log.release()
    with log.active.path.open("ab") as file:
        file.write(b"torn")
    for path in (*log.directory.glob("*index"), *log.directory.glob("*.snapshot")):
        path.unlink()
    for changes in range(10_000):
        with pytest.MonkeyPatch.context() as patch:
            CrashPoint(patch, changes)
            try:
                open_test_log(log.directory, CONFIG).release()
            except Crashed:
                continue
            break
    again = open_test_log(log.directory, CONFIG)
    assert facts(again) == expected
    again.release()
