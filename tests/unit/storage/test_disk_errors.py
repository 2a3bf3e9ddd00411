"""A full disk and a failing one, by real means: a file size limit, a full device, a tiny file system."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from headrace.protocol.errors import ErrorCode
from headrace.storage.config import LogConfig
from headrace.storage.errors import LogOffline
from headrace.storage.log import Log
from headrace.storage.segment import Segment
from support.logs import files_in, open_test_log, read_all
from support.records import make_batch, make_marker, split_batches

# Appends to two logs until the system refuses to let the first one's file grow, and tells what happened.
FILE_TOO_LARGE = """
import json, resource, signal, sys
from pathlib import Path
from headrace.protocol.errors import KafkaError
from headrace.storage.config import LogConfig
from support.logs import open_test_log
from support.records import make_batch

directory = Path(sys.argv[1])
config = LogConfig(segment_bytes=10**6)
full, other = (open_test_log(directory / name, config) for name in ("full-0", "other-0"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
acknowledged, errors = 0, []
for _ in range(20):
    try:
        acknowledged = full.append(make_batch([bytes(700)]), leader_epoch=0).last_offset + 1
    except KafkaError as error:
        errors.append([int(error.code), str(error)])
size = (directory / "full-0" / f"{0:020d}.log").stat().st_size
for _ in range(3):
    other.append(make_batch([bytes(700)]), leader_epoch=0)
full.close()
other.close()
print(json.dumps({"acknowledged": acknowledged, "errors": errors, "size": size}))
"""


def test_a_file_that_may_not_grow_takes_its_log_offline_and_no_other(tmp_path: Path) -> None:
    told = json.loads(
        subprocess.run(
            [sys.executable, "-c", FILE_TOO_LARGE, str(tmp_path)],
            check=True,
            capture_output=True,
            cwd=Path(__file__).parents[2],  # where `support` is
        ).stdout
    )

    assert told["acknowledged"] == 6
    assert len(told["errors"]) == 14
    for code, sentence in told["errors"]:
        assert code == ErrorCode.KAFKA_STORAGE_ERROR
        assert sentence.startswith(f"{tmp_path / 'full-0'} is offline: could not append to it: ")
        assert os.strerror(errno.EFBIG) in sentence
    again = open_test_log(tmp_path / "full-0")
    assert [len(batch) for batch in read_all(again)] == 6 * [len(make_batch([bytes(700)]))]
    assert told["size"] == again.size  # the half that was written has gone at once
    again.release()
    other = open_test_log(tmp_path / "other-0", clean=True)
    assert other.log_end_offset == 3
    other.release()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("mounting a file system needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def append_until_offline(log: Log) -> tuple[int, LogOffline]:
    """The offset up to which appends were acknowledged, and the refusal that came then."""
    acknowledged = log.log_end_offset
    while True:
        try:
            acknowledged = log.append(make_batch([bytes(700)]), leader_epoch=0).last_offset + 1
        except LogOffline as refusal:
            return acknowledged, refusal


def test_a_full_disk_takes_its_log_offline_and_loses_nothing(small_disk: Path, tmp_path: Path) -> None:
    log, other = open_test_log(small_disk / "orders-0"), open_test_log(tmp_path / "other-0")

    acknowledged, refusal = append_until_offline(log)

    assert refusal.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert str(small_disk / "orders-0") in str(refusal)
    assert os.strerror(errno.ENOSPC) in str(refusal)
    assert log.offline == str(refusal)
    other.append(make_batch(), leader_epoch=0)
    other.close()
    log.close()  # writes nothing more
    (small_disk / "orders-0" / f"{0:020d}.timeindex").write_bytes(b"")  # some room for opening again
    again = open_test_log(small_disk / "orders-0", log_start_offset=0)
    assert again.log_end_offset >= acknowledged
    assert len(read_all(again)) == again.log_end_offset
    again.delete_oldest_segments(len(again.segments) - 1)
    assert again.append(make_batch(), leader_epoch=0).base_offset >= acknowledged
    again.release()


def test_whatever_the_disk_refuses_first_nothing_acknowledged_is_lost(small_disk: Path) -> None:
    """The disk fills up at another place each time: a batch, a new segment, an index, a snapshot."""
    for filler in range(0, 40_000, 1_777):
        (small_disk / "filler").write_bytes(bytes(filler))
        directory = small_disk / f"orders-{filler}"
        acknowledged, _ = _filled(directory)
        (small_disk / "filler").unlink()
        again = open_test_log(directory)
        assert len(read_all(again)) == again.log_end_offset >= acknowledged
        again.truncate_fully(0)
        again.release()
        for path in directory.iterdir():
            path.unlink()
        directory.rmdir()


def _filled(directory: Path) -> tuple[int, LogOffline]:
    log = open_test_log(directory)
    try:
        return append_until_offline(log)
    finally:
        log.release()


def every_call(log: Log) -> list[Callable[[], object]]:
    return [
        lambda: log.append(make_batch(), leader_epoch=0),
        lambda: log.append_internal(make_batch(), leader_epoch=0),
        lambda: log.append_as_follower(make_batch(base_offset=100)),
        lambda: log.read(0, 100),
        lambda: log.offset_for_timestamp(0),
        log.offset_of_max_timestamp,
        lambda: log.aborted_transactions(0, 1),
        lambda: log.truncate_to(0),
        lambda: log.truncate_fully(0),
        lambda: log.delete_records_before(1),
        lambda: log.delete_oldest_segments(1),
        log.roll,
        log.flush,
    ]


def test_a_log_that_is_offline_refuses_every_call(log: Log) -> None:
    log.append(make_batch(), leader_epoch=0)
    os.close(log.active.file.descriptor)  # the file is gone, as with a disk that is pulled out
    with pytest.raises(LogOffline):
        log.append(make_batch(), leader_epoch=0)
    log.active.file.opened = None
    before = files_in(log.directory, ".log", ".index", ".timeindex", ".snapshot")

    for call in every_call(log):
        with pytest.raises(LogOffline, match=os.strerror(errno.EBADF)):
            call()

    log.close()
    assert files_in(log.directory, ".log", ".index", ".timeindex", ".snapshot") == before


def test_a_log_that_is_deleted_while_it_is_flushed_has_not_failed(
    log: Log, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log.append(make_batch(), leader_epoch=0)
    flush = Segment.flush

    def deleted_meanwhile(segment: Segment) -> None:
        log.retire()
        shutil.rmtree(log.directory)
        flush(segment)

    monkeypatch.setattr(Segment, "flush", deleted_meanwhile)

    with pytest.raises(LogOffline, match="has been deleted"):
        log.flush()

    assert caplog.messages == []


def full_device(log: Log) -> None:
    """Every write to the active segment fails from now on, as on a full disk."""
    os.close(log.active.file.descriptor)
    log.active.file.opened = os.open("/dev/full", os.O_RDWR)


def test_a_full_device_leaves_the_file_as_it_was(log: Log, open_log: Callable[..., Log]) -> None:
    log.append(make_batch(3), leader_epoch=0)
    before = files_in(log.directory, ".log")
    full_device(log)

    with pytest.raises(LogOffline, match=os.strerror(errno.ENOSPC)):
        log.append(make_batch(), leader_epoch=0)

    assert files_in(log.directory, ".log") == before
    log.release()
    assert open_log().log_end_offset == 3


def abort(log: Log) -> None:
    batch = make_batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.append(batch, leader_epoch=2)
    log.append_internal(make_marker(7, commit=False), leader_epoch=2)


def make_unwritable(path: Path) -> None:
    """Put a directory where a file would have to be written: writing it fails, for root, too."""
    path.unlink(missing_ok=True)
    path.mkdir()


@pytest.mark.parametrize(
    ("name", "act"),
    [
        (f"{2:020d}.log", lambda log: log.roll()),
        (f"{2:020d}.snapshot.tmp", lambda log: log.roll()),
        ("leader-epoch-checkpoint.tmp", lambda log: log.append(make_batch(), leader_epoch=9)),
        ("leader-epoch-checkpoint.tmp", lambda log: log.delete_records_before(1)),
        ("leader-epoch-checkpoint.tmp", lambda log: log.truncate_to(0)),
        ("leader-epoch-checkpoint.tmp", lambda log: log.truncate_fully(7)),
        (f"{0:020d}.timeindex", lambda log: log.roll()),
        (f"{0:020d}.txnindex", abort),
        (f"{2:020d}.snapshot.tmp", lambda log: log.close()),
    ],
)
def test_a_file_that_cannot_be_written_takes_the_log_offline(
    log: Log, name: str, act: Callable[[Log], object]
) -> None:
    log.append(make_batch(), leader_epoch=1)
    log.append(make_batch(), leader_epoch=2)
    make_unwritable(log.directory / name)

    with pytest.raises(LogOffline, match="orders-0 is offline: could not"):
        act(log)

    assert log.offline


def test_an_index_that_cannot_be_read_takes_the_log_offline(log: Log, open_log: Callable[..., Log]) -> None:
    log.append(make_batch(), leader_epoch=1)
    log.close()
    again = open_log(clean=True)
    make_unwritable(log.directory / f"{0:020d}.txnindex")

    with pytest.raises(LogOffline, match="could not read it"):
        again.aborted_transactions(0, 1)


def test_a_disk_that_cannot_sync_takes_the_log_offline(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no way to make fsync of a real file fail, so that one call is replaced."""
    log.append(make_batch(), leader_epoch=0)

    def failing(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fdatasync", failing)
    with pytest.raises(LogOffline, match=f"could not flush it: .*{os.strerror(errno.EIO)}"):
        log.flush()

    assert log.recovery_point == 0
    monkeypatch.undo()
    with pytest.raises(LogOffline):  # what an fsync that failed has dropped, a second does not bring back
        log.flush()


def test_a_disk_that_cannot_read_takes_the_log_offline(log: Log, tmp_path: Path) -> None:
    log.append(make_batch(), leader_epoch=0)
    os.close(log.active.file.descriptor)
    log.active.file.opened = os.open(tmp_path, os.O_RDONLY)  # reading a directory fails

    with pytest.raises(LogOffline, match="could not read it"):
        log.read(0, 100)


def test_a_failed_append_is_not_there_after_opening_again(log: Log, open_log: Callable[..., Log]) -> None:
    log.append(make_batch(), leader_epoch=1)
    make_unwritable(log.directory / "leader-epoch-checkpoint.tmp")
    with pytest.raises(LogOffline):
        log.append(make_batch(), leader_epoch=2)
    log.release()
    (log.directory / "leader-epoch-checkpoint.tmp").rmdir()

    again = open_log()

    assert [len(split_batches(batch)) for batch in read_all(again)] == [1]
    assert again.epochs.entries == ((1, 0),)


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let this process open no more than `count` files for a while."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    first_free = os.open(os.devnull, os.O_RDONLY)
    held = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + 100, limits[1]))
    try:
        with suppress(OSError):
            while True:
                held.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(count):
            os.close(held.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        for descriptor in (*held, first_free):
            os.close(descriptor)


@pytest.mark.parametrize("left", range(4))
def test_too_many_open_files_take_no_log_offline(tmp_path: Path, left: int) -> None:
    """With none left nothing can be opened; with one or two a new segment fails half way."""
    config = LogConfig(segment_bytes=2000)
    log = open_test_log(tmp_path / "orders-0", config)
    acknowledged = [log.append(make_batch([bytes(700)]), leader_epoch=0).base_offset for _ in range(4)]
    log.close()
    log = open_test_log(tmp_path / "orders-0", config, clean=True)

    with descriptors_left(left):
        for _ in range(4):
            with suppress(LogOffline):
                acknowledged.append(log.append(make_batch([bytes(700)]), leader_epoch=0).base_offset)
            with suppress(LogOffline):
                log.read(0, 10**6)
            with suppress(LogOffline):
                log.flush()

    assert log.offline is None
    acknowledged += [log.append(make_batch([bytes(700)]), leader_epoch=0).base_offset for _ in range(4)]
    assert acknowledged == list(range(len(acknowledged)))
    assert len(read_all(log)) == len(acknowledged)
    log.close()
    again = open_test_log(tmp_path / "orders-0", config)
    assert len(read_all(again)) == len(acknowledged)
    again.release()
