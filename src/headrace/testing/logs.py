"""Logs for tests: opened with small segments, read to the end, looked at from outside."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.recovery import open_log
from headrace.testing.clock import SettableClock
from headrace.testing.records import headers_of, split_batches

_MEMORY = Path("/dev/shm")  # noqa: S108  a place, not a file

SMALL = LogConfig(segment_bytes=2048, index_interval_bytes=200)


def open_test_log(
    directory: Path,
    config: LogConfig = SMALL,
    *,
    now_ms: Callable[[], int] | None = None,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
) -> Log:
    """`open_log` with small segments and a clock that stands still."""
    return open_log(
        directory,
        config,
        now_ms=now_ms or SettableClock(),
        recovery_point=recovery_point,
        log_start_offset=log_start_offset,
        clean=clean,
    )


def memory_directory() -> TemporaryDirectory[str]:
    """A temporary directory in memory where the system has one: thousands of syncs cost nothing there."""
    return TemporaryDirectory(dir=_MEMORY if _MEMORY.is_dir() else None)


def read_all(log: Log, *, max_bytes: int = 2**30) -> list[bytes]:
    """Every batch from the log's start to its end, as a consumer gets them that never stops asking."""
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
    """Name and content of the files in `directory` that end in one of `suffixes`."""
    paths = sorted(path for path in directory.iterdir() if path.suffix in suffixes)
    return {path.name: path.read_bytes() for path in paths}
