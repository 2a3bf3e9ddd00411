"""Append and read throughput of the log alone, beside a plain write/pread loop over the same bytes.

    .venv/bin/python bench/log.py [--megabytes 256] [--directory DIR]

"plain + crc" writes each batch with one `pwrite` and checksums it once: what no log can do without.
Runs of all columns are interleaved and the best of each is shown: read ratios, not times.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from crc32c import crc32c

from headrace.protocol.batch import CRC_START
from headrace.protocol.records import Record, encode_batch
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.recovery import open_log

KIB, MIB = 1024, 1024 * 1024
BATCH_SIZES = (1 * KIB, 16 * KIB, 1 * MIB)
REPEATS = 5


class Run(NamedTuple):
    seconds: float
    cpu: float
    batches: int
    size: int

    @property
    def megabytes_per_second(self) -> float:
        return self.batches * self.size / MIB / self.seconds

    @property
    def cpu_us(self) -> float:
        return self.cpu / self.batches * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=256, help="written per run (less for small batches)")
    parser.add_argument("--directory", type=Path, help="where to write; a temporary directory if not given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        for size in BATCH_SIZES:
            compare(Path(name), size, arguments.megabytes * MIB)


def compare(directory: Path, size: int, total: int) -> None:
    count = min(total // size, 40_000)
    batch = make_batch(size)
    columns: dict[str, Callable[[], Run]] = {
        "plain write": lambda: plain_write(directory, batch, count, checksum=False),
        "plain write + crc": lambda: plain_write(directory, batch, count, checksum=True),
        "log append": lambda: log_append(directory, batch, count),
        "plain pread": lambda: plain_read(directory, batch, count),
        "log read": lambda: log_read(directory, batch, count),
    }
    best: dict[str, Run] = {}
    for _ in range(REPEATS):
        for name, measure in columns.items():
            run = measure()
            if name not in best or run.seconds < best[name].seconds:
                best[name] = run
    show(len(batch), count, best)


def show(size: int, count: int, best: dict[str, Run]) -> None:
    print(f"\n{size / KIB:,.0f} KiB batches, {count:,} of them")
    print(f"  {'':18} {'MB/s':>9} {'batches/s':>11} {'CPU us/batch':>13} {'of plain':>9}")
    for name, run in best.items():
        baseline = best["plain pread" if "read" in name else "plain write + crc"]
        ratio = run.megabytes_per_second / baseline.megabytes_per_second
        print(
            f"  {name:18} {run.megabytes_per_second:>9,.0f} {run.batches / run.seconds:>11,.0f} "
            f"{run.cpu_us:>13.1f} {ratio:>8.0%}"
        )
    over = best["log append"].cpu_us - best["plain write + crc"].cpu_us
    print(f"  an append costs {over:.1f} us of CPU over plain write + crc")


def make_batch(size: int) -> bytearray:
    value = os.urandom(size)
    overhead = len(encode_batch([Record(b"key", value, timestamp=1)])) - size
    return encode_batch([Record(b"key", value[: size - overhead], timestamp=1)])


def timed(work: Callable[[], object], count: int, size: int) -> Run:
    start, cpu = time.perf_counter(), time.process_time()
    work()
    return Run(time.perf_counter() - start, time.process_time() - cpu, count, size)


def plain_write(directory: Path, batch: bytearray, count: int, *, checksum: bool) -> Run:
    path = directory / "plain"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    view = memoryview(batch)

    def work() -> None:
        position = 0
        for _ in range(count):
            if checksum:
                crc32c(view[CRC_START:])
            position += os.pwrite(descriptor, view, position)

    run = timed(work, count, len(batch))
    os.close(descriptor)
    return run


def plain_read(directory: Path, batch: bytearray, count: int) -> Run:
    size = len(batch)
    descriptor = os.open(directory / "plain", os.O_RDONLY)

    def work() -> None:
        for number in range(count):
            os.pread(descriptor, size, number * size)

    run = timed(work, count, size)
    os.close(descriptor)
    return run


def open_fresh(directory: Path) -> Log:
    path = directory / "bench-0"
    for file in path.glob("*"):
        file.unlink()
    return open_log(path, LogConfig(max_message_bytes=2 * MIB), now_ms=lambda: 1)


def log_append(directory: Path, batch: bytearray, count: int) -> Run:
    log = open_fresh(directory)
    view = memoryview(batch)
    zero = bytes(8)

    def work() -> None:
        for _ in range(count):
            view[:8] = zero  # as every client sends it
            log.append(view, leader_epoch=0)

    run = timed(work, count, len(batch))
    view[:8] = zero
    log.release()
    return run


def log_read(directory: Path, batch: bytearray, count: int) -> Run:
    log = open_log(directory / "bench-0", LogConfig(), now_ms=lambda: 1)
    size = len(batch)

    def work() -> None:
        for offset in range(count):  # one batch a read, as the plain loop does
            log.read(offset, size)

    run = timed(work, count, size)
    log.release()
    return run


if __name__ == "__main__":
    main()
