"""Logs for tests: opened with small segments, compacted, and read to the end."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Unpack

from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.compaction.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.log import Appended, Log
from headrace.storage.open_files import OpenFiles, SegmentFile
from headrace.storage.recovery import open_log
from support.clock import SettableClock
from support.records import TIMESTAMP, BatchOptions, headers_of, split_batches

_MEMORY = Path("/dev/shm")

SMALL = LogConfig(segment_bytes=2048, index_interval_bytes=200)


def open_test_log(
    directory: Path,
    config: LogConfig = SMALL,
    *,
    now_ms: Callable[[], int] | None = None,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
    files: OpenFiles | None = None,
) -> Log:
    """Call `open_log` with small segments and a clock that stands still."""
    return open_log(
        directory,
        config,
        now_ms=now_ms or SettableClock(),
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean=clean,
        files=files,
    )


def one_open_file() -> OpenFiles:
    """Keep one file of a segment open at a time: whatever is used next is opened first."""
    return OpenFiles(1, flush=_synced)


def _synced(file: SegmentFile) -> bool:
    file.sync()
    return True


def memory_directory() -> TemporaryDirectory[str]:
    """Return a temporary directory in memory if the system has one: syncs cost nothing there."""
    return TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


def read_all(log: Log, *, max_bytes: int = 2**30) -> list[bytes]:
    """Return every batch from the start of the log to its end."""
    batches: list[bytes] = []
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, max_bytes)
        if not data:
            break
        batches += split_batches(data)
        offset = headers_of(data)[-1].next_offset
    return batches


def files_in(directory: Path, *suffixes: str) -> dict[str, bytes]:
    """Return names and contents of the files in `directory` with one of the `suffixes`."""
    paths = sorted(path for path in directory.iterdir() if path.suffix in suffixes)
    return {path.name: path.read_bytes() for path in paths}


COMPACTED = LogConfig(
    segment_bytes=2048, index_interval_bytes=200, compact=True, delete=False, delete_retention_ms=1000
)


def put(
    log: Log, *pairs: tuple[bytes, bytes | None], timestamp: int = TIMESTAMP, **options: Unpack[BatchOptions]
) -> Appended:
    """Append a batch of these keys and values; a value of None is a tombstone."""
    records = [Record(key, value, (), timestamp) for key, value in pairs]
    return log.append(encode_batch(records, **options), leader_epoch=0)


def compact(log: Log, *, first_dirty_offset: int = 0, max_keys: int = 1000) -> int | None:
    """Compact all closed and stable segments; return the first dirty offset afterwards."""
    plan = plan_compaction(
        log, first_dirty_offset=first_dirty_offset, up_to_offset=log.last_stable_offset(log.log_end_offset)
    )
    if plan is None:
        return first_dirty_offset
    return install(log, run_compaction(plan, max_keys=max_keys, stop=lambda: False))


def pairs_in(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Return offset, key and value of every record that is not a marker."""
    return [
        (record.offset, record.key, record.value)
        for batch in read_all(log)
        for header in headers_of(batch)
        if not header.is_control
        for record in decode_batch(batch, header)
    ]
