"""A broker's log directory: started, stopped, crashed, refused, damaged."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.protocol.batch import build_batch, read_batch
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.storage.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.directory import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSETS,
    HIGH_WATERMARKS,
    LOG_START_OFFSETS,
    RECOVERY_POINTS,
    LogDirectory,
)
from headrace.storage.errors import CorruptLog, ForeignDirectory, InvalidTopic, LogOffline, StorageError
from headrace.storage.identity import Identity
from headrace.storage.log import Log
from headrace.testing.clock import SettableClock
from headrace.testing.logs import COMPACTED, pairs_in, put, read_all
from headrace.testing.records import TIMESTAMP, make_batch

US = Identity(1, "our-cluster")
CONFIG = LogConfig(segment_bytes=4096, index_interval_bytes=500)
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 3)
TOPIC_ID = bytes(range(16))

OpenDirectory = Callable[..., LogDirectory]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "logs"


@pytest.fixture
def open_directory(path: Path) -> Iterator[OpenDirectory]:
    """Open the directory again and again, as one broker or another."""
    opened: list[LogDirectory] = []

    def opening(identity: Identity = US, *, config: LogConfig = CONFIG) -> LogDirectory:
        opened.append(
            LogDirectory.open(path, identity, config_of=lambda _topic: config, now_ms=SettableClock())
        )
        return opened[-1]

    yield opening
    for directory in opened:
        directory.release()


def fill(log: Log, batches: int = 10, *, size: int = 1000) -> None:
    for _ in range(batches):
        log.append(make_batch([bytes(size)]), leader_epoch=0)


def crash(directory: LogDirectory) -> None:
    directory.release()


def everything_in(path: Path) -> dict[str, tuple[int, bytes]]:
    """Name, time of the last change and content of everything below `path`, and of itself."""
    entries = [path, *sorted(path.rglob("*"))]
    return {
        str(entry): (entry.stat().st_mtime_ns, entry.read_bytes() if entry.is_file() else b"")
        for entry in entries
        if entry.name != ".lock"  # reading a file that is locked by this process lets go of the lock
    }


def flip_a_bit(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


# -- stopping and starting -----------------------------------------------------------------------


def test_what_was_created_is_there_again_after_a_stop(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.create(PAYMENTS, TOPIC_ID[::-1], CONFIG)
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
    assert (again.high_watermarks, again.cleaner_offsets) == ({ORDERS: 9}, {ORDERS: 4})


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
    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 50_000)
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


# -- whose it is ---------------------------------------------------------------------------------


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


# -- damage --------------------------------------------------------------------------------------


def with_damage_below_the_recovery_point(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    for partition in (ORDERS, PAYMENTS):
        fill(directory.create(partition, TOPIC_ID, CONFIG), 3)
        directory.logs[partition].flush()
    directory.logs[ORDERS].delete_records_before(1)
    directory.checkpoint()
    crash(directory)
    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 1500)


def test_a_damaged_log_is_reported_and_the_others_work(open_directory: OpenDirectory, path: Path) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    directory = open_directory()

    assert set(directory.failed) == {ORDERS}
    assert "00000000000000000000.log is corrupt at byte" in directory.failed[ORDERS]
    fill(directory.logs[PAYMENTS])
    assert directory.logs[PAYMENTS].log_end_offset == 13
    directory.close()
    assert not (path / CLEAN_SHUTDOWN).exists()


def test_a_damaged_log_is_still_reported_at_the_next_start_and_not_cut(
    open_directory: OpenDirectory, path: Path
) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    data = (path / "orders-0" / "00000000000000000000.log").read_bytes()
    for _ in range(2):
        directory = open_directory()
        directory.checkpoint()
        directory.close()
        assert set(directory.failed) == {ORDERS}
    assert (path / "orders-0" / "00000000000000000000.log").read_bytes() == data

    flip_a_bit(path / "orders-0" / "00000000000000000000.log", 1500)  # repaired
    repaired = open_directory()
    assert (repaired.failed, repaired.logs[ORDERS].log_start_offset) == ({}, 1)
    assert repaired.logs[ORDERS].log_end_offset == 3


def test_a_damaged_log_is_not_created_anew_but_can_be_deleted(
    open_directory: OpenDirectory, path: Path
) -> None:
    with_damage_below_the_recovery_point(open_directory, path)
    directory = open_directory()
    with pytest.raises(StorageError, match="is corrupt at byte"):
        directory.create(ORDERS, TOPIC_ID, CONFIG)

    directory.delete(ORDERS)
    assert not (path / "orders-0").exists()
    assert directory.create(ORDERS, TOPIC_ID, CONFIG).log_end_offset == 0


def test_a_marker_that_makes_no_sense_fails_its_log_alone(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    fill(directory.create(PAYMENTS, TOPIC_ID, CONFIG))
    crash(directory)
    nonsense = build_batch(
        b"\xff" * 20,
        base_offset=10,
        last_offset_delta=0,
        records_count=1,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
        control=True,
        producer_id=1,
        producer_epoch=0,
    )
    last = max((path / "orders-0").glob("*.log"))
    last.write_bytes(last.read_bytes() + nonsense)

    again = open_directory()
    assert (set(again.failed), set(again.logs)) == ({ORDERS}, {PAYMENTS})


def test_a_topic_id_that_cannot_be_read_fails_its_log_alone(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    directory.create(ORDERS, TOPIC_ID, CONFIG)
    directory.create(PAYMENTS, TOPIC_ID, CONFIG)
    directory.close()
    (path / "orders-0" / "partition.metadata").write_text("version: 0\n")

    again = open_directory()
    assert (set(again.failed), set(again.logs)) == ({ORDERS}, {PAYMENTS})


@pytest.mark.parametrize("name", [RECOVERY_POINTS, LOG_START_OFFSETS, HIGH_WATERMARKS, CLEANER_OFFSETS])
@pytest.mark.parametrize("content", [b"", b"0\n2\norders 0 5\n", b"\xff\xfe", b"0\n1\norders 0\n"])
def test_a_damaged_checkpoint_is_no_obstacle(
    open_directory: OpenDirectory, path: Path, name: str, content: bytes
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    crash(directory)
    (path / name).write_bytes(content)

    assert open_directory().logs[ORDERS].log_end_offset == 10


def test_an_offline_log_leaves_no_clean_marker_and_keeps_its_recovery_point(
    open_directory: OpenDirectory, path: Path
) -> None:
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log, 2)
    log.flush()
    log.release()
    data = (path / "orders-0" / "00000000000000000000.log").read_bytes()
    (path / "orders-0" / "00000000000000000000.log").unlink()
    with pytest.raises(LogOffline):
        log.read(0, 1)
    directory.close()
    (path / "orders-0" / "00000000000000000000.log").write_bytes(data)

    assert not (path / CLEAN_SHUTDOWN).exists()
    assert open_directory().logs[ORDERS].recovery_point == 2


def test_a_log_that_cannot_be_closed_does_not_keep_the_others_from_it(
    open_directory: OpenDirectory, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 2)
    fill(directory.create(PAYMENTS, TOPIC_ID, CONFIG), 2)

    def damaged() -> None:
        raise CorruptLog(path / "orders-0", 0, "found on closing")

    monkeypatch.setattr(directory.logs[ORDERS], "close", damaged)
    directory.close()
    assert not (path / CLEAN_SHUTDOWN).exists()
    assert "payments 3 2" in (path / RECOVERY_POINTS).read_text()
    open_directory()


# -- creating and deleting -----------------------------------------------------------------------


def test_a_deleted_log_does_not_come_back(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.high_watermarks[ORDERS] = directory.cleaner_offsets[ORDERS] = 5
    directory.delete(ORDERS)
    assert (directory.logs, directory.topic_ids, directory.high_watermarks) == ({}, {}, {})
    crash(directory)

    again = open_directory()
    assert (again.logs, again.failed) == ({}, {})
    assert [child for child in path.iterdir() if child.is_dir()] == []


def test_a_compaction_of_a_deleted_log_does_not_reach_a_new_one_of_its_name(
    open_directory: OpenDirectory,
) -> None:
    directory = open_directory(config=COMPACTED)
    log = directory.create(ORDERS, TOPIC_ID, COMPACTED)
    for number in range(100):
        put(log, (b"key", b"%d" % number))
    plan = plan_compaction(log, first_dirty_offset=0, up_to_offset=log.log_end_offset)
    assert plan is not None
    compacted = run_compaction(plan, max_keys=10, stop=lambda: False)

    directory.delete(ORDERS)
    anew = directory.create(ORDERS, TOPIC_ID, COMPACTED)
    put(anew, (b"key", b"new"))

    assert install(log, compacted) is None
    assert pairs_in(anew) == [(0, b"key", b"new")]
    with pytest.raises(LogOffline, match="has been deleted"):
        log.read(0, 1)


def test_a_log_of_the_longest_name_can_be_deleted(open_directory: OpenDirectory, path: Path) -> None:
    directory = open_directory()
    partition = TopicPartition("x" * 249, 0)
    directory.create(partition, TOPIC_ID, CONFIG)
    directory.delete(partition)
    assert not (path / str(partition)).exists()

    directory.unlink_deleted()
    assert [child for child in path.iterdir() if child.is_dir()] == []


def test_a_new_log_inherits_nothing_from_a_deleted_one_of_its_name(open_directory: OpenDirectory) -> None:
    """Though the process dies before the next checkpoint."""
    directory = open_directory()
    log = directory.create(ORDERS, TOPIC_ID, CONFIG)
    fill(log)
    log.flush()
    log.delete_records_before(8)
    directory.high_watermarks[ORDERS] = directory.cleaner_offsets[ORDERS] = 9
    directory.checkpoint()
    directory.delete(ORDERS)
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 3)
    crash(directory)

    again = open_directory()
    log = again.logs[ORDERS]
    assert (log.log_start_offset, log.recovery_point, log.log_end_offset) == (0, 0, 3)
    assert (again.high_watermarks, again.cleaner_offsets) == ({}, {})


def test_a_new_log_inherits_nothing_from_one_deleted_before_a_crash(open_directory: OpenDirectory) -> None:
    directory = open_directory()
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG))
    directory.logs[ORDERS].delete_records_before(8)
    directory.high_watermarks[ORDERS] = 9
    directory.checkpoint()
    directory.delete(ORDERS)
    crash(directory)

    directory = open_directory()
    assert directory.high_watermarks == {}
    fill(directory.create(ORDERS, TOPIC_ID, CONFIG), 3)
    crash(directory)
    assert open_directory().logs[ORDERS].log_start_offset == 0


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "../up", "ünïcode", "x" * 250, "a\n"])
def test_a_name_that_kafka_refuses_is_refused_and_leaves_nothing(
    open_directory: OpenDirectory, path: Path, name: str
) -> None:
    directory = open_directory()
    before = everything_in(path)
    with pytest.raises(InvalidTopic) as refused:
        directory.create(TopicPartition(name, 0), TOPIC_ID, CONFIG)

    assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert everything_in(path) == before


@pytest.mark.parametrize(
    "name", ["a-b.c_d", "-", "...", "orders-3", "a-delete", "x" * 249, "__consumer_offsets"]
)
def test_names_with_dashes_and_dots_come_back_as_they_were(open_directory: OpenDirectory, name: str) -> None:
    directory = open_directory()
    partitions = {TopicPartition(name, number) for number in (0, 7, 12)}
    for partition in partitions:
        directory.create(partition, TOPIC_ID, CONFIG)
    directory.close()

    assert set(open_directory().logs) == partitions


# -- a real crash --------------------------------------------------------------------------------

WRITER = """
import sys
from pathlib import Path
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.protocol.ids import TopicPartition
from headrace.testing.clock import SettableClock
from headrace.testing.records import make_batch
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
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "subprocess.Popen[str]":
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
