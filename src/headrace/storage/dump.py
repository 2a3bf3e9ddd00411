"""The content of a partition's files, entry by entry, without a broker. Changes nothing.

Files are read a chunk at a time, so that a segment of any size needs little memory; indexes, snapshots and
checkpoints are small.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from headrace.protocol.batch import BatchHeader
from headrace.protocol.control_records import ControlRecordType, decode_control_key, decode_end_txn_marker
from headrace.protocol.records import Record, decode_batch
from headrace.storage.checkpoints import read_lines, read_offsets
from headrace.storage.checks.scan import PrivateFile, Scanner
from headrace.storage.config import LogConfig
from headrace.storage.epochs import FILE_NAME as LEADER_EPOCHS
from headrace.storage.errors import CorruptIndex, StorageError
from headrace.storage.files import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, names_in
from headrace.storage.index import IndexFile
from headrace.storage.producers.snapshot import CorruptSnapshot, decode_snapshot
from headrace.storage.segment import Segment

Entry = dict[str, Any]
OFFSET_CHECKPOINTS: Final = (
    "recovery-point-offset-checkpoint",
    "replication-offset-checkpoint",
    "log-start-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
MAX_BYTES: Final = 128 * 1024 * 1024  # of files that are read as a whole
_OF_SEGMENT: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)
_READ_IN_PARTS: Final = (LOG, OFFSET_INDEX, TIME_INDEX)
_END_MARKERS: Final = {ControlRecordType.ABORT, ControlRecordType.COMMIT}


class Batch(NamedTuple):
    """A batch, and its records if they were asked for."""

    entry: Entry
    is_control: bool
    records: Iterator[Record]


def files_of(path: Path) -> list[Path]:
    """Return the files of a partition's directory that can be printed, in order; or the file itself."""
    if not path.is_dir():
        if not _is_known(path.name):
            raise StorageError(f"{path} is not a file of a partition, such as 00000000000000000000.log")
        return [path]
    found = sorted(path / name for name in names_in(path) if _is_known(name))
    if not found:
        raise StorageError(f"{path} has no files of a partition: name a directory such as orders-0")
    return found


def _is_known(name: str) -> bool:
    return (
        name == LEADER_EPOCHS
        or name in OFFSET_CHECKPOINTS
        or (name.endswith(_OF_SEGMENT) and name.partition(".")[0].isdigit())
    )


def batches(path: Path, start: int = 0) -> Iterator[Batch]:
    """Yield the batches of a segment that reach offset `start`; CorruptLog at the first damaged one."""
    size = path.stat().st_size
    with PrivateFile(path, os.open(path, os.O_RDONLY)) as file:
        scanner = Scanner(file, size)
        for position, header in scanner.checked_headers():
            if header.last_offset >= start:
                yield Batch(
                    _batch(position, header), header.is_control, _records(scanner, position, header, start)
                )


def _records(scanner: Scanner, position: int, header: BatchHeader, start: int) -> Iterator[Record]:
    for record in decode_batch(scanner.batch(position, header), header):
        if record.offset >= start:
            yield record


def _batch(position: int, header: BatchHeader) -> Entry:
    entry = {
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "position": position,
        "size": header.size,
        "timestamp": header.max_timestamp,
        "timestamp_type": header.timestamp_type.name,
        "leader_epoch": header.leader_epoch,
        "compression": header.compression.name.lower(),
        "crc": header.crc,
    }
    if header.has_producer:
        entry |= {
            "producer_id": header.producer_id,
            "producer_epoch": header.producer_epoch,
            "sequence": header.base_sequence,
        }
    flags = {"transactional": header.is_transactional, "control": header.is_control}
    return entry | {name: True for name, is_set in flags.items() if is_set}


def control_record(record: Record) -> Entry:
    """Return what a control record says; ProtocolError if it is malformed."""
    kind = decode_control_key(record.key or b"")
    entry: Entry = {"offset": record.offset, "control": kind.name}
    if kind in _END_MARKERS:
        entry["coordinator_epoch"] = decode_end_txn_marker(record.value or b"").coordinator_epoch
    return entry


def entries(path: Path) -> Iterator[Entry]:
    """Yield the entries of an index, a snapshot or a checkpoint; StorageError if it is damaged."""
    if path.suffix not in _READ_IN_PARTS and path.stat().st_size > MAX_BYTES:
        raise StorageError(f"{path} has more than {MAX_BYTES:,} bytes: no broker has written it")
    if path.name == LEADER_EPOCHS:
        for line in read_lines(path):
            epoch, _, start = line.partition(" ")
            yield {"leader_epoch": _number(path, epoch), "start_offset": _number(path, start)}
    elif path.name in OFFSET_CHECKPOINTS:
        for (topic, partition), offset in read_offsets(path).items():
            yield {"topic": topic, "partition": partition, "offset": offset}
    else:
        yield from _BY_SUFFIX[path.suffix](path)


def _number(path: Path, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise StorageError(f"{path}: {text[:40]!r} is not a number") from None


def _segment(path: Path) -> Segment:
    return Segment(path.parent, int(path.stem), LogConfig())


def _offset_index(path: Path) -> Iterator[Entry]:
    segment = _segment(path)
    for relative, position in _ascending(segment.offset_index):
        yield {"offset": segment.base_offset + relative, "position": position}


def _time_index(path: Path) -> Iterator[Entry]:
    segment = _segment(path)
    for timestamp, relative in _ascending(segment.time_index):
        yield {"timestamp": timestamp, "offset": segment.base_offset + relative}


def _ascending(index: IndexFile) -> Iterator[tuple[int, int]]:
    """Yield the entries of an index up to its padding; CorruptIndex if they do not ascend.

    Kafka fills the file of an index with zeros, up to segment.index.bytes, for as long as it writes to it.
    """
    last = (0, 0)
    for entry in index:
        if entry == (0, 0):
            return
        if entry[0] < last[0] or entry[1] < last[1]:
            raise CorruptIndex(f"{index.path} has the entry {entry} after {last}: entries have to ascend")
        yield entry
        last = entry


def _txn_index(path: Path) -> Iterator[Entry]:
    for aborted in _segment(path).txn_index:
        yield aborted._asdict()


def _snapshot(path: Path) -> Iterator[Entry]:
    try:
        states = decode_snapshot(path.read_bytes())
    except CorruptSnapshot as error:
        raise StorageError(f"{path}: {error}") from error
    for state in states:
        last = state.recent[-1] if state.recent else None
        yield {
            "producer_id": state.producer_id,
            "producer_epoch": state.epoch,
            "coordinator_epoch": state.coordinator_epoch,
            "last_timestamp": state.last_timestamp,
            "last_sequence": None if last is None else last.last_sequence,
            "last_offset": None if last is None else last.last_offset,
            "txn_first_offset": state.txn_first_offset,
        }


_BY_SUFFIX: Final[dict[str, Callable[[Path], Iterator[Entry]]]] = {
    OFFSET_INDEX: _offset_index,
    TIME_INDEX: _time_index,
    TXN_INDEX: _txn_index,
    SNAPSHOT: _snapshot,
}
