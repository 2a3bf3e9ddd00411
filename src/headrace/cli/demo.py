"""`headrace demo`: what there is so far, at work: a partition log written, torn, recovered, compacted."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from headrace import __version__
from headrace.protocol.batch import read_header
from headrace.protocol.compression import Compression
from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.recovery import open_log
from headrace.storage.verify import verify

_BATCHES = 400
_RECORDS_PER_BATCH = 100
_KEYS = 500
_TORN_OFF = 37  # bytes: somewhere within the last batch
_CONFIG = LogConfig(segment_bytes=512 * 1024, compact=True)


@click.command()
def demo() -> None:
    """Write, read, tear, recover and compact a partition log in a temporary directory."""
    with tempfile.TemporaryDirectory(prefix="headrace-") as name:
        directory = Path(name) / "orders-0"
        click.echo(f"Headrace {__version__}: one partition's log, in Kafka's file format, in {directory}\n")
        log = _open(directory)
        _write(log)
        _read(log)
        log = _crash_and_recover(log)
        _compact(log)
        log.close()
        _show_files(directory)
    click.echo("\nThe broker, with which any Kafka client writes and reads such logs, comes next.")


def _open(directory: Path) -> Log:
    return open_log(directory, _CONFIG, now_ms=lambda: time.time_ns() // 1_000_000)


def _say(verb: str, what: str) -> None:
    click.echo(f"  {click.style(f'{verb:<10}', bold=True)} {what}")


def _write(log: Log) -> None:
    started = time.perf_counter()
    for number in range(_BATCHES):
        log.append(_batch(number), leader_epoch=0)
    log.flush()
    seconds = time.perf_counter() - started
    _say(
        "written",
        f"{log.log_end_offset:,} records in {_BATCHES} batches (gzip, snappy, lz4, zstd and none), "
        f"{log.size:,} bytes in {len(log.segments)} segments, {seconds:.2f} s",
    )


def _batch(number: int) -> bytearray:
    now_ms = time.time_ns() // 1_000_000
    records = [
        Record(
            f"order-{(number * 7 + place) % _KEYS}".encode(), os.urandom(30).hex().encode(), timestamp=now_ms
        )
        for place in range(_RECORDS_PER_BATCH)
    ]
    return encode_batch(records, compression=Compression(number % len(Compression)))


def _read(log: Log) -> None:
    offsets = [record.offset for record in _records(log)]
    assert offsets == list(range(log.log_end_offset)), "records are missing or out of order"
    _say("read", f"{len(offsets):,} records back, every one in its place")


def _records(log: Log) -> Iterator[Record]:
    offset = log.log_start_offset
    while data := log.read(offset, 64 * 1024):
        position = 0
        while position < len(data):
            header = read_header(data, position)
            yield from decode_batch(memoryview(data)[position : position + header.size], header)
            position += header.size
            offset = header.next_offset


def _crash_and_recover(log: Log) -> Log:
    log.append(_batch(_BATCHES), leader_epoch=0)
    acknowledged = log.recovery_point
    active = log.active.path
    log.release()
    os.truncate(active, active.stat().st_size - _TORN_OFF)
    _say("torn", f"{_TORN_OFF} bytes off a batch that had not been flushed, as a power cut might")
    recovered = _open(log.directory)
    assert recovered.log_end_offset == acknowledged, "a flushed record is gone"
    _say("recovered", f"all {acknowledged:,} flushed records; the torn batch is gone, the indexes are new")
    return recovered


def _compact(log: Log) -> None:
    log.roll()
    before = log.size
    plan = plan_compaction(log, first_dirty_offset=0, up_to_offset=log.log_end_offset)
    assert plan is not None, "there is something to compact"
    install(log, run_compaction(plan, max_keys=100_000, stop=lambda: False))
    left = sum(1 for _ in _records(log))
    assert left == _KEYS, f"{left} records are left of {_KEYS} keys"
    _say("compacted", f"to the last record of each of {left} keys: {before:,} bytes became {log.size:,}")


def _show_files(directory: Path) -> None:
    reports = list(verify(directory))
    assert not any(report.problems for report in reports), reports
    _say("verified", f"{sum(report.batches for report in reports)} batches and their indexes are sound\n")
    for path in sorted(directory.iterdir()):
        click.echo(f"    {path.stat().st_size:>9,}  {path.name}")
