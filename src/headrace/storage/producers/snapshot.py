"""The bytes of a `.snapshot` file: every producer of a partition with its last batch.

    0  version   2   1
    2  crc       4   CRC-32C of all that follows
    6  count     4
   10  entries  46   each: producer id 8, epoch 2, last sequence 4, last offset 8, offset delta 4,
                     timestamp 8, coordinator epoch 4, first offset of the open transaction 8 (-1: none)

Only the last of the five batches in memory is stored, as in Kafka.
"""

import struct
from collections.abc import Collection

from headrace.protocol.batch import NO_SEQUENCE, add_sequence
from headrace.protocol.checksum import crc32c
from headrace.protocol.ids import Offset, ProducerId
from headrace.storage.errors import StorageError
from headrace.storage.producers.state import AppendedBatch, ProducerState

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")
_NONE = -1


class CorruptSnapshot(StorageError):
    """The snapshot is unreadable; an older one, or the log itself, is used instead."""


def encode_snapshot(states: Collection[ProducerState]) -> bytes:
    content = _COUNT.pack(len(states)) + b"".join(map(_encode_entry, states))
    return _HEAD.pack(_VERSION, crc32c(content)) + content


def decode_snapshot(data: bytes) -> list[ProducerState]:
    """Return the producers in `data`; raise CorruptSnapshot if version, checksum or size is wrong."""
    start = _HEAD.size + _COUNT.size
    if len(data) < start:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, expected {_VERSION}")
    if crc32c(memoryview(data)[_HEAD.size :]) != crc:
        raise CorruptSnapshot("the checksum does not match")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    if count * _ENTRY.size != len(data) - start:
        raise CorruptSnapshot(f"{count} entries announced in {len(data) - start} bytes")
    states = []
    for entry in _ENTRY.iter_unpack(data[start:]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first = entry
        state = ProducerState(ProducerId(producer_id))
        state.epoch = epoch
        state.coordinator_epoch = coordinator_epoch
        state.last_timestamp = state.written_ms = timestamp
        state.txn_first_offset = None if first == _NONE else Offset(first)
        if last_offset >= 0:
            sequence = add_sequence(last_sequence, -delta)
            base_offset = last_offset - delta
            state.recent = (AppendedBatch(sequence, last_sequence, base_offset, last_offset, timestamp),)
        states.append(state)
    return states


def _encode_entry(state: ProducerState) -> bytes:
    last = state.recent[-1] if state.recent else AppendedBatch(NO_SEQUENCE, NO_SEQUENCE, _NONE, _NONE, _NONE)
    return _ENTRY.pack(
        state.producer_id,
        state.epoch,
        last.last_sequence,
        last.last_offset,
        last.last_offset - last.base_offset,
        state.last_timestamp,
        state.coordinator_epoch,
        _NONE if state.txn_first_offset is None else state.txn_first_offset,
    )
