"""Which records of a batch compaction keeps: decided batch by batch, without I/O.

Compaction keeps the last record of each key, a tombstone until its delete horizon, and a transaction marker
while the log has records of its transaction. Offsets, order and every producer's last sequence number do not
change.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from enum import Enum
from hashlib import blake2b
from typing import NamedTuple

from headrace.protocol.batch import NO_TIMESTAMP, BatchHeader, build_batch
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import RawRecord, raw_records, rebase_timestamp
from headrace.storage.append.batches import read_end_marker
from headrace.storage.append.inspection import MAX_RECORDS
from headrace.storage.txn_index import AbortedTxn

_DIGEST_BYTES = 16
BYTES_PER_KEY = 192  # measured: dict slot, digest and offset of one entry


class OffsetMap:
    """The newest offset of each key, in bounded memory.

    Keys are stored as digests: among four billion keys, two collide with a probability of one in 2**64.
    """

    def __init__(self, max_keys: int) -> None:
        self._max_keys = max_keys
        self._offsets: dict[bytes, int] = {}
        self.end_offset = 0  # all records before it are in the map

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """Note that `key` was written at `offset`; return False if there is no room for another key."""
        digest = _digest(key)
        if len(self._offsets) >= self._max_keys and digest not in self._offsets:
            return False
        self._offsets[digest] = offset
        return True

    def newest(self, key: bytes) -> int | None:
        return self._offsets.get(_digest(key))


def _digest(key: bytes) -> bytes:
    """Return the digest of a key; a key shorter than a digest stands for itself."""
    return key if len(key) < _DIGEST_BYTES else blake2b(key, digest_size=_DIGEST_BYTES).digest()


class LastWrite(NamedTuple):
    """The last batch of a known producer, which compaction must not remove."""

    data_offset: int | None  # None: only a marker is known
    epoch: int


class _Fate(Enum):
    FILTER = 1  # decide for each record
    KEEP = 2  # keep all records
    DISCARD = 3  # keep no record


class AbortedTxns:
    """The aborted transactions of a log, indexed by producer."""

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._of_producer: dict[int, list[AbortedTxn]] = {}
        for txn in sorted(aborted, key=lambda txn: txn.first_offset):
            self._of_producer.setdefault(txn.producer_id, []).append(txn)

    def holding(self, header: BatchHeader) -> AbortedTxn | None:
        """Return the aborted transaction that a batch, or a marker, belongs to."""
        txns = self._of_producer.get(header.producer_id, [])
        offset: int = header.base_offset
        number = bisect_right(txns, offset, key=lambda txn: txn.first_offset) - 1
        return txns[number] if number >= 0 and offset <= txns[number].last_offset else None


class CompactionFilter:
    """One pass over a log from its start: `keep` gets every batch in order."""

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
        self._unfinished: set[int] = set()  # producers with transactional records since their last marker
        self._still_aborted: list[AbortedTxn] = []

    def take_aborted(self) -> list[AbortedTxn]:
        """Return the aborted transactions whose markers `keep` has seen since the last call, with records.

        Their records are removed by this pass, but a consumer may still be reading the old segments.
        """
        taken, self._still_aborted = self._still_aborted, []
        return taken

    def keep(self, header: BatchHeader, batch: memoryview) -> memoryview | bytearray | None:
        """Return what stays of `batch`: the batch itself, a smaller one at the same offsets, or None.

        Raise InvalidRecord if its records cannot be read; `keep` can be called for the next batch all the
        same.
        """
        fate, marker_is_idle = self._fate(header, batch)
        if header.base_offset >= self._offsets.end_offset:
            return batch  # a later pass decides
        records = read_records(header, batch) if fate is not _Fate.DISCARD else []
        kept = [record for record in records if fate is _Fate.KEEP or self._is_kept(header, record)]
        if not kept and not self._is_last_write(header):
            return None
        if kept:
            horizon = header.delete_horizon_ms
            # Of a dirty batch, consumers may still need the tombstones.
            is_dirty = header.last_offset >= self._offsets.end_offset
            has_tombstone = not all(record.has_value for record in kept)
            if horizon is None and not is_dirty and (marker_is_idle or has_tombstone):
                horizon = self._now_ms + self._delete_retention_ms
            if len(kept) == len(records) == header.records_count and horizon == header.delete_horizon_ms:
                return batch
            base_timestamp = kept[0].timestamp if horizon is None else horizon
            body = compress(
                header.compression, b"".join(rebase_timestamp(record, base_timestamp) for record in kept)
            )
        else:  # the bare header, byte for byte as Kafka leaves it: also without a delete horizon
            horizon, base_timestamp, body = None, NO_TIMESTAMP, b""
        return build_batch(
            body,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            records_count=len(kept),
            base_timestamp=base_timestamp,
            max_timestamp=max((record.timestamp for record in kept), default=header.max_timestamp),
            leader_epoch=header.leader_epoch,
            compression=header.compression if kept else Compression.NONE,
            timestamp_type=header.timestamp_type,
            transactional=header.is_transactional,
            control=header.is_control,
            delete_horizon=horizon is not None,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )

    def _fate(self, header: BatchHeader, batch: memoryview) -> tuple[_Fate, bool]:
        """Return what happens to the batch's records, and whether it is a marker of no remaining records."""
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
    """Return the records of a batch; raise InvalidRecord if they are unreadable or too many."""
    if header.records_count > MAX_RECORDS:
        raise InvalidRecord(
            f"a batch of {header.records_count:,} records is too large for compaction (INVALID_RECORD)"
        )
    return list(raw_records(batch, header))
