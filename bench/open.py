"""How long a log directory takes to close cleanly and to open again, and to recover after a crash.

.venv/bin/python bench/open.py [--partitions 1000] [--gigabytes 10] [--directory DIR]
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from headrace.protocol.ids import TopicPartition
from headrace.protocol.records import Record, encode_batch
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity

MIB = 1024 * 1024
BATCH = 256 * 1024
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--gigabytes", type=float, default=10)
    parser.add_argument("--directory", type=Path, help="where to write; a temporary directory if not given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        path = Path(name) / "data"
        directory = timed("create", lambda: open_directory(path))
        total = int(arguments.gigabytes * 1024 * MIB)
        timed(f"write {total / MIB:,.0f} MiB", lambda: fill(directory, arguments.partitions, total))
        timed("close cleanly (everything is synced)", directory.close)
        directory = timed(f"open {arguments.partitions:,} partitions", lambda: open_directory(path))
        directory.release()
        directory = timed("open after a crash (the last segments are checked)", lambda: open_directory(path))
        timed("close again", directory.close)


def open_directory(path: Path) -> LogDirectory:
    config = LogConfig(segment_bytes=4 * MIB)
    return LogDirectory.open(path, Identity(1, "bench"), config_of=lambda _topic: config, now_ms=lambda: 1)


def fill(directory: LogDirectory, partitions: int, total: int) -> None:
    batch = encode_batch([Record(b"key", os.urandom(BATCH), timestamp=1)])
    for number in range(partitions):
        log = directory.create(
            TopicPartition("bench", number), bytes(15) + b"\x01", LogConfig(segment_bytes=4 * MIB)
        )
        for _ in range(max(1, total // partitions // len(batch))):
            batch[:8] = bytes(8)
            log.append(batch, leader_epoch=0)


def timed(what: str, work: Callable[[], T]) -> T:
    started, cpu = time.perf_counter(), time.process_time()
    result = work()
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    print(f"  {what:45} {seconds:7.2f} s  {cpu_seconds:7.2f} s of CPU", flush=True)
    return result


if __name__ == "__main__":
    main()
