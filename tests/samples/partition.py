"""A partition's log with everything in it: compressions, producers, transactions, epochs, segments."""

from pathlib import Path

from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Compression
from headrace.storage.config import LogConfig
from headrace.storage.log import Log
from headrace.storage.open_files import OpenFiles
from support.logs import open_test_log, read_all
from support.records import TIMESTAMP, make_batch, make_marker

CONFIG = LogConfig(segment_bytes=900, index_interval_bytes=150)
INDEXES = (".index", ".timeindex", ".txnindex")


def appends() -> list[bytes]:
    """Batches of every compression, of idempotent and transactional producers, and their markers."""
    batches = []
    for number, compression in enumerate([*Compression, *Compression]):
        values = [bytes([65 + number]) * (40 + 30 * (number % 3))] * (1 + number % 3)
        time = TIMESTAMP + (number * 37) % 100
        batches.append(make_batch(values, timestamps=time, compression=compression))
        batches.append(
            make_batch(
                2,
                timestamps=time + 5,
                producer_id=1 + number % 2,
                producer_epoch=0,
                base_sequence=number // 2 * 2,
                transactional=True,
            )
        )
        if number % 3 == 2:
            batches += [make_marker(producer, commit=producer == 2, timestamp=time) for producer in (1, 2)]
    return [bytes(batch) for batch in batches]


APPENDS = appends()


def written(directory: Path, count: int | None = None, *, files: OpenFiles | None = None) -> Log:
    """A log of the first `count` of the batches; two epochs, several segments."""
    log = open_test_log(directory, CONFIG, files=files)
    for number, batch in enumerate(APPENDS[:count]):
        epoch = 1 + number // 12
        if read_batch(batch).is_control:
            log.append_internal(batch, leader_epoch=epoch)
        else:
            log.append(batch, leader_epoch=epoch)
    return log


def crashed(directory: Path) -> Log:
    """A log that stopped without being closed; its segments and what they hold stay in the object."""
    log = written(directory)
    log.release()
    return log


def facts(log: Log) -> dict[str, object]:
    """All that follows from the batches."""
    return {
        "batches": read_all(log),
        "end": log.log_end_offset,
        "epochs": log.epochs.entries,
        "producers": {
            state.producer_id: (state.epoch, tuple(state.recent), state.txn_first_offset)
            for state in log.producers
        },
        "stable": log.last_stable_offset(log.log_end_offset),
        "aborted": log.aborted_transactions(0, log.log_end_offset),
        "youngest": log.offset_of_max_timestamp(),
        "segments": [segment.base_offset for segment in log.segments],
    }
