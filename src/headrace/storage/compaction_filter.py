"""What compaction keeps of a batch: decided here, batch by batch, without a file.

Of each key the last record is kept, a tombstone until its time is over, and a marker while records of
its transaction are there. Offsets, order and every producer's last sequence number stay what they were.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple, TypedDict

from headrace.protocol.batch import NO_TIMESTAMP, BatchHeader, TimestampType, build_batch
from headrace.protocol.compression import compress
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import RawRecord, raw_records, rebase_timestamp
from headrace.storage.batches import read_end_marker
from headrace.storage.inspection import MAX_RECORDS
from headrace.storage.txn_index import AbortedTxn

_DIGEST_BYTES = 16
BYTES_PER_KEY = 192  # measured: dict slot, digest and offset of one entry


class OffsetMap:
    """Keys are remembered by digest: two keys meet with a chance of one in 2**64 for four billion of them."""

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._offsets: dict[bytes, int] = {}
        self.end_offset = 0  # everything before it has been taken in

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; False if there is no room for another key."""
        digest = _digest(key)
        if len(self._offsets) >= self._max_keys and digest not in self._offsets:
            return False
        self._offsets[digest] = offset
        return True

    def newest(self, key: bytes) -> int | None:
        return self._offsets.get(_digest(key))


def _digest(key: bytes) -> bytes:
    """The key itself while it is shorter than a digest, so that the two cannot be mistaken."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()


class LastWrite(NamedTuple):
    """What a producer that is still known wrote last: compaction must not lose it."""

    data_offset: int | None  # None: only a marker is left of it
    epoch: int


class _Fate(Enum):
    FILTER = 1  # each record is looked at
    KEEP = 2  # all records stay
    DISCARD = 3  # none stays


class AbortedTxns:
    """The aborted transactions of a log, to be asked about its batches."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._of_producer: dict[int, list[AbortedTxn]] = {}
        for txn in sorted(aborted, key=lambda txn: txn.first_offset):
            self._of_producer.setdefault(txn.producer_id, []).append(txn)

    def holding(self, header: BatchHeader) -> AbortedTxn | None:
        """The aborted transaction that a producer's batch, or the marker that ends it, belongs to."""
        txns = self._of_producer.get(header.producer_id, [])
        number = bisect_right(txns, header.base_offset, key=lambda txn: txn.first_offset) - 1
        return txns[number] if number >= 0 and header.base_offset <= txns[number].last_offset else None


class CompactionFilter:
    """One pass over a log from its start: hand it every batch in order."""

    def __init__(
        self,
        offsets: OffsetMap,
        aborted: AbortedTxns,
        last_writes: Mapping[int, LastWrite],
        *,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._offsets = offsets
        self._aborted = aborted
        self._last_writes = last_writes
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._unfinished: set[int] = set()  # producers with records of a transaction met since its marker
        self._still_aborted: list[AbortedTxn] = []

    def take_aborted(self) -> list[AbortedTxn]:
        """The aborted transactions whose markers were met since the last call, with records before them.

        Their records are gone with this pass, but a reader of the old segments may be under way.
        """
        taken, self._still_aborted = self._still_aborted, []
        return taken

    def keep(self, header: BatchHeader, batch: memoryview) -> memoryview | bytearray | None:
        """What stays of `batch`: itself, a smaller one at the same offsets, or None.

        InvalidRecord if its records cannot be read; the next batch can be handed in all the same.
        """
        fate, marker_is_idle = self._fate(header, batch)
        if header.base_offset >= self._offsets.end_offset:
            return batch  # a later pass decides
        records = read_records(header, batch) if fate is not _Fate.DISCARD else []
        kept = [record for record in records if fate is _Fate.KEEP or self._is_kept(header, record)]
        if not kept:
            return _emptied(header) if self._is_last_write(header) else None
        horizon = header.delete_horizon_ms
        is_dirty = header.last_offset >= self._offsets.end_offset  # readers still meet what it deletes
        has_tombstone = not all(record.has_value for record in kept)
        if horizon is None and not is_dirty and (marker_is_idle or has_tombstone):
            horizon = self._now_ms + self._delete_retention_ms
        if len(kept) == len(records) == header.records_count and horizon == header.delete_horizon_ms:
            return batch
        return _rebuilt(header, kept, horizon)

    def _fate(self, header: BatchHeader, batch: memoryview) -> tuple[_Fate, bool]:
        """What happens to the batch's records, and whether it is a marker that nothing needs any more."""
        if header.is_control:
            idle = self._is_idle_marker(header, batch)
            return (_Fate.DISCARD if idle and self._is_due(header) else _Fate.KEEP), idle
        if header.is_transactional:
            self._unfinished.add(header.producer_id)
            if self._aborted.holding(header):
                return _Fate.DISCARD, False
        return _Fate.FILTER, False

    def _is_idle_marker(self, header: BatchHeader, batch: memoryview) -> bool:
        if read_end_marker(batch, header) is None:
            return header.records_count == 0
        if header.producer_id not in self._unfinished:
            return True
        self._unfinished.remove(header.producer_id)
        txn = self._aborted.holding(header)
        if txn is not None:
            self._still_aborted.append(txn)
        return False

    def _is_kept(self, header: BatchHeader, record: RawRecord) -> bool:
        if record.offset >= self._offsets.end_offset:
            return True
        if record.key is None:
            return False
        newest = self._offsets.newest(record.key)
        return (newest is None or record.offset >= newest) and (record.has_value or not self._is_due(header))

    def _is_due(self, header: BatchHeader) -> bool:
        return header.delete_horizon_ms is not None and header.delete_horizon_ms <= self._now_ms

    def _is_last_write(self, header: BatchHeader) -> bool:
        last = self._last_writes.get(header.producer_id)
        if last is None:
            return False
        if last.data_offset is None:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.data_offset


def read_records(header: BatchHeader, batch: memoryview) -> list[RawRecord]:
    """The records of a batch; InvalidRecord if they cannot be read, or are more than memory allows."""
    if header.records_count > MAX_RECORDS:
        raise InvalidRecord(
            f"{header.records_count:,} records in one batch, compaction reads {MAX_RECORDS:,}"
        )
    return list(raw_records(batch, header))


def _rebuilt(header: BatchHeader, records: list[RawRecord], delete_horizon_ms: int | None) -> bytearray:
    """A batch of `records` in the frame of `header`: same offsets, sequences, times, as Kafka writes it."""
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    body = b"".join(rebase_timestamp(record, base_timestamp) for record in records)
    return build_batch(
        compress(header.compression, body),
        records_count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        compression=header.compression,
        delete_horizon=delete_horizon_ms is not None,
        **_frame(header),
    )


def _emptied(header: BatchHeader) -> bytearray:
    """The frame of `header` around nothing, byte for byte as Kafka leaves it: without a horizon, too."""
    return build_batch(
        b"",
        records_count=0,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        **_frame(header),
    )


class _Frame(TypedDict):
    base_offset: int
    last_offset_delta: int
    leader_epoch: int
    timestamp_type: TimestampType
    transactional: bool
    control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int


def _frame(header: BatchHeader) -> _Frame:
    """What every batch keeps, whatever becomes of its records."""
    return _Frame(
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        leader_epoch=header.leader_epoch,
        timestamp_type=header.timestamp_type,
        transactional=header.is_transactional,
        control=header.is_control,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )
