"""Make record batches for tests in one line, and split bytes into batches."""

import struct
from collections.abc import Sequence
from typing import TypedDict, Unpack

from headrace.protocol.batch import LENGTH_END, BatchHeader, read_batch
from headrace.protocol.compression import Buffer, Compression
from headrace.protocol.records import Record, encode_batch

TIMESTAMP = 1_700_000_000_000  # the default of all records


class BatchOptions(TypedDict, total=False):
    """Options of a batch; all have defaults."""

    base_offset: int
    leader_epoch: int
    compression: Compression
    transactional: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int


def make_batch(
    values: int | Sequence[bytes | None] = 1,
    *,
    timestamps: int | Sequence[int] = TIMESTAMP,
    **options: Unpack[BatchOptions],
) -> bytearray:
    """Return a batch of so many records, or of these values; keys are `k0`, `k1` and so on.

    make_batch(3) has three records at one time, make_batch([b"a"], timestamps=[5]) one at time 5.
    """
    if isinstance(values, int):
        values = [b"value %d" % number for number in range(values)]
    times = [timestamps] * len(values) if isinstance(timestamps, int) else timestamps
    records = [
        Record(b"k%d" % number, value, (), timestamp)
        for number, (value, timestamp) in enumerate(zip(values, times, strict=True))
    ]
    return encode_batch(records, **options)


def make_marker(
    producer_id: int,
    *,
    commit: bool,
    producer_epoch: int = 0,
    coordinator_epoch: int = 0,
    timestamp: int = TIMESTAMP,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the control batch with which a coordinator ends a transaction."""
    key = struct.pack(">hh", 0, int(commit))
    value = struct.pack(">hi", 0, coordinator_epoch)
    return encode_batch(
        [Record(key, value, (), timestamp)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        transactional=True,
        control=True,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
    )


def split_batches(data: Buffer) -> list[bytes]:
    """Return the batches in `data`, each checked; CorruptMessage if there is anything else."""
    batches = []
    position = 0
    while position < len(data):
        size = read_batch(data, position).batch_length + LENGTH_END
        batches.append(bytes(data[position : position + size]))
        position += size
    return batches


def headers_of(data: Buffer) -> list[BatchHeader]:
    """Return the headers of the batches in `data`."""
    return [read_batch(batch) for batch in split_batches(data)]
