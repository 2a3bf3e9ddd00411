"""A new log: its files come with the first append, and until then everything about it works."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import LogOffline
from headrace.storage.identity import read_topic_id
from headrace.storage.log import Log
from headrace.storage.new_log import new_log
from headrace.storage.recovery import open_log
from headrace.storage.retention import enforce_retention
from support.clock import SettableClock
from support.logs import read_all
from support.records import make_batch
from unit.storage.directory_contents import CONFIG, ORDERS, TOPIC_ID, OpenDirectory, crash, fill


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path / "orders-0", TOPIC_ID, LogConfig(), now_ms=SettableClock())


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.read(0, 1000),
        Log.roll,
        Log.flush,
        Log.flush_closed,
        Log.unlink_deleted,
        Log.offset_of_max_timestamp,
        Log.close,
        Log.retire,
        lambda log: log.begin_epoch(3),
        lambda log: log.truncate_to(0),
        lambda log: log.delete_records_before(0),
        lambda log: log.offset_for_timestamp(-1),
        lambda log: log.offset_for_timestamp(0),
        lambda log: enforce_retention(log, high_watermark=0),
        lambda log: log.aborted_transactions(0, 1),
    ],
)
def test_an_unwritten_log_is_used_without_any_file(log: Log, use: Callable[[Log], object]) -> None:
    use(log)
    assert not log.has_files
    assert not log.directory.exists()


def test_the_first_append_creates_the_files(log: Log) -> None:
    log.begin_epoch(3)
    log.append(make_batch([b"first"]), leader_epoch=3)
    log.append(make_batch([b"second"]), leader_epoch=3)
    written = read_all(log)
    log.close()
    again = open_log(log.directory, LogConfig(), now_ms=SettableClock())
    assert (read_all(again), again.epochs.entries) == (written, ((3, 0),))
    assert read_topic_id(log.directory) == TOPIC_ID
    again.release()


def test_a_follower_that_begins_later_in_the_log_creates_the_files(log: Log) -> None:
    log.truncate_fully(100)
    assert (log.has_files, log.log_start_offset, log.log_end_offset) == (True, 100, 100)
    log.release()


def test_a_log_whose_files_cannot_be_created_goes_offline(tmp_path: Path, log: Log) -> None:
    (tmp_path / "orders-0").write_text("in the way")
    with pytest.raises(LogOffline):
        log.append(make_batch([b"first"]), leader_epoch=0)
    assert not log.has_files
    assert log.offline is not None


def test_the_name_of_the_directory_is_durable_with_the_first_flush(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr("headrace.storage.log_files.sync_directory", synced.append)
    log.append(make_batch([b"first"]), leader_epoch=0)
    log.flush()
    log.append(make_batch([b"second"]), leader_epoch=0)
    log.flush()
    assert synced == [log.directory.parent]
    log.release()


def names_in(directory: LogDirectory) -> set[str]:
    return {path.name for path in directory.path.iterdir() if path.is_dir()}


def test_an_unwritten_log_leaves_nothing_behind(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    directory.create(ORDERS, TOPIC_ID, CONFIG)
    directory.checkpoint()
    assert names_in(directory) == set()
    directory.delete(ORDERS)
    directory.unlink_deleted()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 1)
    assert names_in(directory) == {"orders-0"}
    crash(directory)
    assert set(open_directory().logs) == {ORDERS}
