"""Compaction over a plain list of batches, with nothing clever in it: what the real one is compared to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.protocol.batch import BatchHeader, read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.records import decode_batch
from headrace.storage.compaction.filter import LastWrite


@dataclass(frozen=True, slots=True)
class NaiveRecord:
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


@dataclass(slots=True)
class NaiveBatch:
    """What has to be the same in the log and in the list."""

    base_offset: int
    last_offset: int
    records: list[NaiveRecord]
    producer: tuple[int, int, int]  # id, epoch and first sequence
    is_control: bool
    is_transactional: bool
    horizon_ms: int | None = None
    txn: int | None = field(default=None, compare=False)  # which transaction, counted from 0


def decoded(batch: Buffer) -> NaiveBatch:
    """A batch as it stands in a log; its checksum is checked on the way."""
    header = read_batch(batch)
    return NaiveBatch(
        base_offset=header.base_offset,
        last_offset=header.last_offset,
        records=[
            NaiveRecord(record.offset, record.key, record.value, record.timestamp)
            for record in decode_batch(batch, header)
        ],
        producer=_producer(header),
        is_control=header.is_control,
        is_transactional=header.is_transactional,
        horizon_ms=header.delete_horizon_ms,
    )


def _producer(header: BatchHeader) -> tuple[int, int, int]:
    return header.producer_id, header.producer_epoch, header.base_sequence


class NaiveLog:
    """A list of batches, and which transactions were aborted."""

    def __init__(self) -> None:
        self.batches: list[NaiveBatch] = []
        self.aborted: set[int] = set()
        self.committed: dict[bytes, bytes | None] = {}  # of each key the last committed value there ever was
        self.last_writes: dict[int, LastWrite] = {}
        self._pending: dict[int, dict[bytes, tuple[int, bytes | None]]] = {}
        self._newest: dict[bytes, int] = {}

    def append(self, batch: NaiveBatch, txn: int | None = None) -> None:
        batch.txn = txn
        self.batches.append(batch)
        producer_id, epoch, _ = batch.producer
        if producer_id >= 0:
            self.last_writes[producer_id] = LastWrite(batch.last_offset, epoch)
        values = {
            record.key: (record.offset, record.value) for record in batch.records if record.key is not None
        }
        if txn is None:
            self._commit(values)
        else:
            self._pending.setdefault(txn, {}).update(values)

    def end_transaction(self, marker: NaiveBatch, txn: int | None, *, commit: bool) -> None:
        marker.txn = txn
        self.batches.append(marker)
        producer_id, epoch, _ = marker.producer
        last = self.last_writes.get(producer_id)
        if last is None or last.epoch != epoch:
            self.last_writes[producer_id] = LastWrite(None, epoch)
        if txn is None:
            return
        values = self._pending.pop(txn)
        if commit:
            self._commit(values)
        else:
            self.aborted.add(txn)

    def _commit(self, values: Mapping[bytes, tuple[int, bytes | None]]) -> None:
        """By offset, not by time: compaction keeps the record that stands last."""
        for key, (offset, value) in values.items():
            if offset > self._newest.get(key, -1):
                self._newest[key] = offset
                self.committed[key] = value

    def compact(self, *, first_dirty: int, end: int, max_keys: int, now_ms: int, retention_ms: int) -> int:
        """Compact what lies below `end`, as far as `max_keys` reach; return how far that was."""
        newest: dict[bytes, int] = {}
        for key, offset in self._dirty_keys(first_dirty, end):
            if key not in newest and len(newest) == max_keys:
                end = offset
                break
            newest[key] = offset
        met = {batch.txn for batch in self.batches if not batch.is_control} - {None}
        for batch in self.batches:
            if batch.base_offset >= end:
                continue
            is_due = batch.horizon_ms is not None and batch.horizon_ms <= now_ms
            is_idle = batch.is_control and batch.txn not in met
            if batch.is_control:
                batch.records = [] if is_idle and is_due else batch.records
            elif batch.txn in self.aborted:
                batch.records = []
            else:
                batch.records = [
                    record for record in batch.records if _is_kept(record, newest, end, is_due=is_due)
                ]
            has_tombstone = any(record.value is None for record in batch.records)
            is_covered = batch.last_offset < end and bool(batch.records)
            if batch.horizon_ms is None and is_covered and (has_tombstone or is_idle):
                batch.horizon_ms = now_ms + retention_ms
            if not batch.records:
                batch.horizon_ms = None  # nothing is left that could be deleted
        self.batches = [batch for batch in self.batches if batch.records or self._is_last_write(batch)]
        return end

    def _dirty_keys(self, first_dirty: int, end: int) -> list[tuple[bytes, int]]:
        return [
            (record.key, record.offset)
            for batch in self.batches
            if not batch.is_control and batch.txn not in self.aborted
            for record in batch.records
            if record.key is not None and first_dirty <= record.offset < end
        ]

    def _is_last_write(self, batch: NaiveBatch) -> bool:
        last = self.last_writes.get(batch.producer[0])
        if last is None:
            return False
        if last.data_offset is None:
            return batch.is_control and batch.producer[1] == last.epoch
        return batch.last_offset == last.data_offset


def _is_kept(record: NaiveRecord, newest: Mapping[bytes, int], end: int, *, is_due: bool) -> bool:
    if record.offset >= end:
        return True
    if record.key is None or (record.value is None and is_due):
        return False
    return record.offset >= newest.get(record.key, -1)
