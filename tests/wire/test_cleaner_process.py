"""The process that compacts: it writes what a thread would write, and its end leaves the log as it was."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from headrace.broker.replicas.cleaner_process import CleanerProcess, CompactionFailed
from headrace.protocol.batch import build_batch
from headrace.protocol.records import Record, encode_batch
from headrace.storage.compaction.cleaner import Compacted, CompactionStopped, install, run_compaction
from headrace.storage.errors import CorruptLog
from headrace.storage.log import Log
from support.logs import COMPACTED, files_in, open_test_log, pairs_in, put, read_all
from unit.storage.compactions import fill, planned
from wire.configs import SET, TOPIC, alter
from wire.process import BrokerProcess
from wire.raw import RawClient
from wire.requests import create_topic, fetch, produce, records_in

FAST: Final = 1e12  # bytes per second
WAIT_S: Final = 60.0
STARTS_ONE: Final = """
import sys
from headrace.broker.replicas.cleaner_process import CleanerProcess
print(CleanerProcess.start().pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process() -> Iterator[CleanerProcess]:
    process = CleanerProcess.start()
    yield process
    process.close()


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    log = open_test_log(tmp_path / "orders-0", COMPACTED)
    yield log
    log.release()


def wait_until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def has_ended(pid: int) -> bool:
    """Whether the process is gone, or only its exit status is left."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def compacted_by(process: CleanerProcess, log: Log, *, rate: float = FAST) -> Compacted:
    return process.run_compaction(planned(log), max_keys=1000, bytes_per_second=rate, stop=lambda: False)


def fill_slowly_compacted(log: Log) -> None:
    """Segments whose compaction takes seconds at 20,000 bytes per second."""
    log.config = replace(COMPACTED, segment_bytes=4000)
    for number in range(40):
        put(log, (b"key", bytes([number]) * 1000))
    log.roll()


def running(process: CleanerProcess, log: Log, stop: Callable[[], bool]) -> Future[Compacted]:
    """A slow compaction, which has begun to write files."""
    with_plan = planned(log)
    pool = ThreadPoolExecutor(1)
    future = pool.submit(process.run_compaction, with_plan, max_keys=1000, bytes_per_second=20_000, stop=stop)
    pool.shutdown(wait=False)
    wait_until(lambda: any(log.directory.glob("*.log.cleaned")))
    return future


def test_it_writes_what_a_thread_writes(process: CleanerProcess, tmp_path: Path) -> None:
    logs = [open_test_log(tmp_path / name / "orders-0", COMPACTED) for name in ("thread", "process")]
    for each in logs:
        fill(each)
    by_thread = run_compaction(planned(logs[0]), max_keys=1000, stop=lambda: False)
    by_process = compacted_by(process, logs[1])

    ends = [install(log, compacted) for log, compacted in zip(logs, (by_thread, by_process), strict=True)]

    assert ends == [15, 15]
    assert files_in(logs[0].directory, ".log", ".index", ".timeindex", ".txnindex") == files_in(
        logs[1].directory, ".log", ".index", ".timeindex", ".txnindex"
    )
    assert [log.segments[0].created_ms for log in logs] == [logs[0].segments[0].created_ms] * 2
    assert read_all(logs[0]) == read_all(logs[1])
    for each in logs:
        each.release()


def test_one_process_compacts_several_logs(process: CleanerProcess, tmp_path: Path) -> None:
    for name in ("a-0", "b-0"):
        log = open_test_log(tmp_path / name, COMPACTED)
        fill(log)
        assert install(log, compacted_by(process, log)) == 15
        log.release()


def test_a_batch_that_cannot_be_read_is_kept_and_logged(
    process: CleanerProcess, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = build_batch(
        b"no record", records_count=1, base_timestamp=0, max_timestamp=0, base_offset=0, last_offset_delta=0
    )
    log.append_internal(damaged, leader_epoch=0)
    put(log, (b"a", b"1"))
    log.roll()

    install(log, compacted_by(process, log))

    assert len(read_all(log)) == 2
    (message,) = caplog.messages
    assert message.startswith("compaction keeps the batch at offsets 0 to 0")


def test_damage_is_reported_and_nothing_is_left(process: CleanerProcess, log: Log) -> None:
    fill(log)
    path = log.segments[0].path
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)

    with pytest.raises(CorruptLog, match="is corrupt at byte 0"):
        compacted_by(process, log)

    assert not any(log.directory.glob("*.cleaned"))
    assert process.is_running


def test_a_killed_process_leaves_the_log_as_it_was(process: CleanerProcess, log: Log) -> None:
    fill_slowly_compacted(log)
    before = files_in(log.directory, ".log", ".index", ".timeindex")
    compaction = running(process, log, stop=lambda: False)

    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(CompactionFailed, match="has ended with status -9"):
        compaction.result()

    assert files_in(log.directory, ".log", ".index", ".timeindex") == before
    assert not any(log.directory.glob("*.cleaned"))
    another = CleanerProcess.start()
    install(log, compacted_by(another, log))
    another.close()
    assert [value for _, _, value in pairs_in(log)] == [bytes([39]) * 1000]


def test_files_of_a_killed_process_are_removed_when_the_log_is_opened(
    process: CleanerProcess, log: Log
) -> None:
    fill_slowly_compacted(log)
    values = pairs_in(log)
    compaction = running(process, log, stop=lambda: False)
    os.kill(process.pid, signal.SIGSTOP)  # so that its files stay as they are

    copy = log.directory.with_name("copy-0")
    subprocess.run(["cp", "-a", log.directory, copy], check=True)
    assert any(copy.glob("*.cleaned"))
    again = open_test_log(copy, COMPACTED)

    assert pairs_in(again) == values
    assert not any(copy.glob("*.cleaned"))
    again.release()
    os.kill(process.pid, signal.SIGKILL)
    assert isinstance(compaction.exception(), CompactionFailed)


def test_a_compaction_is_stopped(process: CleanerProcess, log: Log) -> None:
    fill_slowly_compacted(log)
    stopping = threading.Event()
    compaction = running(process, log, stop=stopping.is_set)

    stopping.set()

    assert isinstance(compaction.exception(), CompactionStopped)
    assert not process.is_running
    assert not any(log.directory.glob("*.cleaned"))


def test_a_truncated_log_stops_its_compaction(process: CleanerProcess, log: Log) -> None:
    fill_slowly_compacted(log)
    compaction = running(process, log, stop=lambda: False)

    log.truncate_to(5)

    assert isinstance(compaction.exception(), CompactionStopped)
    assert not any(log.directory.glob("*.cleaned"))
    assert len(read_all(log)) == 5


def test_it_inherits_no_descriptor(tmp_path: Path) -> None:
    with (tmp_path / "ours").open("wb") as file:
        os.set_inheritable(file.fileno(), True)  # as a careless library may leave it
        process = CleanerProcess.start()
        try:
            wait_until(lambda: b"compaction.process" in Path(f"/proc/{process.pid}/cmdline").read_bytes())
            links = [str(link.readlink()) for link in Path(f"/proc/{process.pid}/fd").iterdir()]
        finally:
            process.close()

    assert str(tmp_path / "ours") not in links


def test_it_ends_with_the_process_that_started_it() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", STARTS_ONE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not has_ended(pid)
        parent.kill()
    wait_until(lambda: has_ended(pid))


# -- in a broker ----------------------------------------------------------------------------------


SETTINGS: Final = {"log.cleaner.backoff.ms": "100", "log.cleaner.threads": "1"}
BATCHES: Final = 400


def fill_topic(client: RawClient, name: str) -> None:
    """More than a thread compacts: 4 MB over four keys."""
    for number in range(BATCHES):
        batch = encode_batch([Record(b"%d" % (number % 4), bytes([number % 256]) * 10_000)])
        assert produce(client, name, batch).error_code == 0


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


def cleaners(broker: BrokerProcess) -> list[int]:
    """The processes that compact for a broker."""
    found = []
    for child in children(broker.pid):
        try:
            if b"compaction.process" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(child)
        except FileNotFoundError:
            continue
    return found


def size_of(broker: BrokerProcess, topic: str) -> int:
    """Return the bytes of all segments; one that is replaced in the meantime counts for nothing."""
    size = 0
    for path in (broker.log_dir / f"{topic}-0").glob("*.log"):
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size


def last_values(client: RawClient, topic: str) -> dict[bytes | None, bytes | None]:
    offset = 0
    values: dict[bytes | None, bytes | None] = {}
    while records := records_in(fetch(client, topic, offset)):
        values |= {record.key: record.value for record in records}
        offset = records[-1].offset + 1
    return values


LAST: Final = {b"%d" % (number % 4): bytes([number % 256]) * 10_000 for number in range(BATCHES)}


def test_a_broker_compacts_with_a_process_that_ends_with_the_pass(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path, SETTINGS) as broker, RawClient(broker.bootstrap) as client:
        create_topic(client, "t", segment_bytes="500000", min_cleanable_dirty_ratio="0.01")
        fill_topic(client, "t")
        alter(client, TOPIC, "t", ("cleanup.policy", SET, "compact"))

        wait_until(lambda: size_of(broker, "t") < 1_000_000)

        assert last_values(client, "t") == LAST
        wait_until(lambda: not cleaners(broker))
        assert broker.complaints() == []


def test_a_broker_that_is_killed_while_it_compacts_has_every_record(tmp_path: Path) -> None:
    slow = SETTINGS | {"log.cleaner.io.max.bytes.per.second": "1000000"}
    with BrokerProcess(tmp_path, slow) as broker:
        with RawClient(broker.bootstrap) as client:
            create_topic(client, "t", segment_bytes="500000", min_cleanable_dirty_ratio="0.01")
            fill_topic(client, "t")
            alter(client, TOPIC, "t", ("cleanup.policy", SET, "compact"))
            wait_until(lambda: any((broker.log_dir / "t-0").glob("*.log.cleaned")))
        (cleaner,) = cleaners(broker)

        broker.kill()
        wait_until(lambda: has_ended(cleaner))
        broker.start()

        with RawClient(broker.bootstrap) as client:
            assert last_values(client, "t") == LAST
            wait_until(lambda: size_of(broker, "t") < 1_000_000)
            assert last_values(client, "t") == LAST
