"""A broker's log directory: started, stopped, killed, refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.protocol.batch import read_batch
from headrace.protocol.ids import TopicPartition
from headrace.storage.checkpoints import read_offsets
from headrace.storage.config import LogConfig
from headrace.storage.directory import CLEAN_SHUTDOWN, LOG_START_OFFSETS, RECOVERY_POINTS, LogDirectory
from headrace.storage.errors import ForeignDirectory
from headrace.storage.identity import Identity
from support.clock import SettableClock
from support.logs import read_all
from unit.storage.directory_contents import (
    CONFIG,
    ORDERS,
    PAYMENTS,
    TOPIC_ID,
    US,
    OpenDirectory,
    crash,
    everything_in,
    fill,
    flip_a_bit,
)


def test_what_was_created_is_there_again_after_a_stop(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    fill(directory.create(PAYMENTS, TOPIC_ID[::-1], CONFIG), 1)
    written = read_all(directory.logs[ORDERS])
    directory.close()

    again = open_directory()
    assert set(again.logs) == {ORDERS, PAYMENTS}
    assert again.topic_ids == {ORDERS: TOPIC_ID, PAYMENTS: TOPIC_ID[::-1]}
    assert read_all(again.logs[ORDERS]) == written
    assert again.failed == {}


def test_offsets_survive_a_restart(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.delete_records_before(7)
    directory.high_watermarks[ORDERS] = 9
    directory.cleaner_offsets[ORDERS] = 4
    directory.close()

    again = open_directory()
    assert again.logs[ORDERS].log_start_offset == 7
    assert again.logs[ORDERS].recovery_point == 10
    assert dict(again.high_watermarks) == {ORDERS: 9}
    assert dict(again.cleaner_offsets) == {ORDERS: 4}


def test_offsets_survive_a_crash_as_of_the_last_checkpoint(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.flush()
    log.delete_records_before(7)
    directory.high_watermarks[ORDERS] = 9
    directory.checkpoint()
    fill(log)
    directory.high_watermarks[ORDERS] = 15
    crash(directory)

    again = open_directory()
    log = again.logs[ORDERS]
    assert (log.log_start_offset, log.recovery_point, log.log_end_offset) == (7, 10, 20)
    assert again.high_watermarks == {ORDERS: 9}


def test_a_clean_stop_and_start_take_no_scan(
    open_directory: OpenDirectory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LogConfig(segment_bytes=100_000, index_interval_bytes=500)
    directory = open_directory(config=config)
    fill(directory.create(ORDERS, TOPIC_ID, config), 500)
    directory.close()
    damaged = path / "orders-0" / "00000000000000000000.log"
    before = damaged.stat()
    flip_a_bit(damaged, 50_000)
    os.utime(damaged, ns=(before.st_atime_ns, before.st_mtime_ns))  # as when a disk fails
    read = 0
    pread = os.pread

    def counting(descriptor: int, size: int, position: int) -> bytes:
        nonlocal read
        data = pread(descriptor, size, position)
        read += len(data)
        return data

    monkeypatch.setattr(os, "pread", counting)
    log = open_directory(config=config).logs[ORDERS]
    assert read < 30_000  # a few look-ups of 8 KiB, of half a megabyte
    assert (log.log_end_offset, log.size > 500_000) == (500, True)


def test_a_start_without_a_stop_before_finds_the_damage_that_a_clean_one_does_not_look_for(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 3)
    crash(directory)
    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 1500)

    assert open_directory().logs[ORDERS].log_end_offset == 1


def test_the_marker_of_a_clean_stop_is_gone_while_the_directory_is_in_use(
    open_directory: OpenDirectory, path: Path
) -> None:
    open_directory().close()
    assert (path / CLEAN_SHUTDOWN).exists()
    open_directory()
    assert not (path / CLEAN_SHUTDOWN).exists()


@pytest.mark.parametrize(
    ("identity", "sentence"),
    [
        (Identity(2, "our-cluster"), "belongs to broker 1, this is broker 2"),
        (Identity(1, "another"), "belongs to cluster our-cluster, this broker is of cluster another"),
    ],
)
def test_a_directory_of_another_is_refused_and_left_untouched(
    open_directory: OpenDirectory, path: Path, identity: Identity, sentence: str
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.close()
    before = everything_in(path)

    with pytest.raises(ForeignDirectory, match=sentence):
        open_directory(identity)
    assert everything_in(path) == before


def test_a_directory_in_use_by_this_process_is_refused_and_left_untouched(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    before = everything_in(path)

    with pytest.raises(ForeignDirectory, match="already in use by this process"):
        open_directory()
    assert everything_in(path) == before
    fill(directory.logs[ORDERS])
    directory.close()
    open_directory()


HOLDER = """
import sys, time
from pathlib import Path
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
directory = LogDirectory.open(
    Path(sys.argv[1]), Identity(1, "our-cluster"), config_of=lambda _: LogConfig(), now_ms=lambda: 0
)
print("open", flush=True)
sys.stdin.read()
"""


def test_a_directory_in_use_by_another_process_is_refused_and_left_untouched(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.close()

    with running(HOLDER, path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        before = everything_in(path)
        with pytest.raises(ForeignDirectory, match="in use by another process"):
            open_directory()
        assert everything_in(path) == before
        holder.kill()
        holder.wait()
    assert open_directory().logs[ORDERS].log_end_offset == 10


@pytest.mark.parametrize(
    "name", ["backup", "lost+found", "to-delete", "orders-0-delete", "orders-x", "a b-0"]
)
def test_a_directory_with_something_else_in_it_is_refused_and_left_untouched(
    open_directory: OpenDirectory, path: Path, name: str
) -> None:
    (path / name).mkdir(parents=True)
    (path / name / "precious").write_text("do not lose me")
    before = everything_in(path)

    with pytest.raises(ForeignDirectory, match="holds nothing but logs"):
        open_directory()
    assert everything_in(path) == before


def test_log_directories_of_other_brokers_of_the_node_are_left_alone(
    open_directory: OpenDirectory, path: Path
) -> None:
    (path / "brokers" / "7" / "orders-0").mkdir(parents=True)

    directory = open_directory()

    assert directory.logs == {}
    directory.close()
    assert (path / "brokers" / "7" / "orders-0").is_dir()


def test_files_beside_the_logs_do_not_matter(open_directory: OpenDirectory, path: Path) -> None:
    path.mkdir()
    (path / "notes-delete").write_text("keep me")
    open_directory().close()
    assert (path / "notes-delete").read_text() == "keep me"


def test_what_kafka_left_half_deleted_goes_and_what_it_was_moving_stays(
    open_directory: OpenDirectory, path: Path
) -> None:
    uuid = "0123456789abcdef0123456789abcdef"
    for suffix in ("-delete", "-future", "-stray"):
        (path / f"orders-0.{uuid}{suffix}").mkdir(parents=True)
        (path / f"orders-0.{uuid}{suffix}" / "00000000000000000000.log").touch()
    directory = open_directory()

    assert sorted(child.name for child in path.iterdir() if child.is_dir()) == [
        f"orders-0.{uuid}-future",
        f"orders-0.{uuid}-stray",
    ]
    assert directory.logs == {}


WRITER = """
import sys
from pathlib import Path
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.protocol.ids import TopicPartition
from support.clock import SettableClock
from support.records import make_batch
config = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
directory = LogDirectory.open(
    Path(sys.argv[1]), Identity(1, "our-cluster"), config_of=lambda _: config, now_ms=SettableClock()
)
partition = TopicPartition("orders", 0)
log = directory.logs.get(partition) or directory.create(partition, bytes(16), config)
while True:
    appended = log.append(make_batch([b"%d" % log.log_end_offset, bytes(500)]), leader_epoch=0)
    print(appended.base_offset, flush=True)
    if appended.base_offset % 20 == 0:
        log.flush()
    if appended.base_offset % 90 == 0:
        directory.checkpoint()
"""


def test_whatever_was_acknowledged_before_a_kill_is_there_after_it(path: Path) -> None:
    """Three times over: the second process goes on with what the first one left."""
    acknowledged: list[int] = []
    for _ in range(3):
        with running(WRITER, path) as writer:
            assert writer.stdout is not None
            acknowledged += [int(writer.stdout.readline()) for _ in range(150)]
            writer.send_signal(signal.SIGKILL)
            rest, _ = writer.communicate()
        acknowledged += [int(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        assert writer.returncode == -signal.SIGKILL

    directory = LogDirectory.open(path, US, config_of=lambda _topic: CONFIG, now_ms=SettableClock())
    log = directory.logs[ORDERS]
    found = {read_batch(batch).base_offset: batch for batch in read_all(log)}
    assert set(acknowledged) <= set(found)
    assert acknowledged == sorted(set(acknowledged))
    assert all(b"%d" % offset in batch for offset, batch in found.items())
    assert log.log_end_offset == max(found) + 2
    directory.close()


class running:  # noqa: N801  reads as a verb
    """A process that runs `program` on a directory; killed at the end, whatever happens."""

    def __init__(self, program: str, path: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, str(path)],
            cwd=Path(__file__).parents[2],  # where `support` is
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "subprocess.Popen[str]":
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()


def test_a_checkpoint_is_written_only_if_it_has_changed(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.flush()
    directory.checkpoint()
    before = (path / RECOVERY_POINTS).stat().st_ino
    directory.checkpoint()
    assert (path / RECOVERY_POINTS).stat().st_ino == before
    fill(log, 1)
    log.flush()
    directory.checkpoint()
    assert (path / RECOVERY_POINTS).stat().st_ino != before


def due(directory: LogDirectory) -> list[TopicPartition]:
    for _ in directory.take_changes():
        pass
    return directory.to_flush()


def test_a_log_is_to_be_flushed_when_its_flush_is_due_and_it_has_new_records(
    open_directory: OpenDirectory,
) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, replace(CONFIG, flush_ms=0))
    assert due(directory) == []
    fill(log, 1)
    assert due(directory) == [ORDERS]
    log.flush()
    assert due(directory) == []
    fill(log, 1)
    assert due(directory) == [ORDERS]
    directory.delete(ORDERS)
    assert due(directory) == []


def test_a_log_is_to_be_flushed_when_it_has_closed_a_segment(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log, 1)
    assert due(directory) == []
    log.roll()
    assert due(directory) == [ORDERS]
    crash(directory)

    again = open_directory()
    assert due(again) == [ORDERS]
    again.logs[ORDERS].flush()
    assert due(again) == []


def test_a_log_that_was_not_flushed_when_it_was_due_is_due_again(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log, 1)
    log.roll()
    assert due(directory) == [ORDERS]
    assert due(directory) == [ORDERS]
    log.offline = "its disk is gone"
    assert due(directory) == []


def test_a_changed_flush_ms_counts_for_records_that_are_in_the_log(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log, 1)
    assert due(directory) == []
    log.use_config(replace(CONFIG, flush_ms=0))
    assert due(directory) == [ORDERS]


def test_only_logs_that_have_changed_are_looked_at(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    written = directory.create(ORDERS, TOPIC_ID, CONFIG)
    directory.create(PAYMENTS, TOPIC_ID, CONFIG)
    fill(written, 1)
    fill(directory.logs[PAYMENTS], 1)
    assert directory._changed == {written, directory.logs[PAYMENTS]}
    directory.checkpoint()
    assert directory._changed == set()

    changes: list[Callable[[], object]] = [
        lambda: fill(written, 2),
        written.roll,
        written.flush,
        lambda: written.delete_records_before(1),
        lambda: written.truncate_to(2),
        lambda: written.truncate_fully(7),
    ]
    for change in changes:
        change()
        assert directory._changed == {written}
        directory.checkpoint()


def test_a_checkpoint_has_the_offsets_of_truncated_logs(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.delete_records_before(3)
    log.flush()
    directory.checkpoint()
    assert read_offsets(path / LOG_START_OFFSETS) == {ORDERS: 3}

    log.truncate_fully(1)
    directory.checkpoint()

    assert read_offsets(path / RECOVERY_POINTS) == {ORDERS: 1}
    assert read_offsets(path / LOG_START_OFFSETS) == {}
