"""Compacted logs for tests: keys written, compacted and read back in one line each."""

from typing import Unpack

from headrace.protocol.records import Record, decode_batch, encode_batch
from headrace.storage.cleaner import install, plan_compaction, run_compaction
from headrace.storage.config import LogConfig
from headrace.storage.log import Appended, Log
from headrace.testing.logs import read_all
from headrace.testing.records import TIMESTAMP, BatchOptions, headers_of

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
    """One whole pass over what is closed and stable; where the log is dirty from then on."""
    plan = plan_compaction(
        log,
        first_dirty_offset=first_dirty_offset,
        up_to_offset=log.last_stable_offset(log.log_end_offset),
    )
    if plan is None:
        return first_dirty_offset
    return install(log, run_compaction(plan, max_keys=max_keys, stop=lambda: False))


def pairs_in(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record that is no marker."""
    return [
        (record.offset, record.key, record.value)
        for batch in read_all(log)
        for header in headers_of(batch)
        if not header.is_control
        for record in decode_batch(batch, header)
    ]
