"""The 61-byte header of a record batch, version 2: the only part of the data that a broker reads.

    0  base offset             8   the broker's to set
    8  batch length            4   bytes after this field
   12  partition leader epoch  4   the broker's to set
   16  magic                   1   2
   17  crc                     4   CRC-32C of everything from byte 21 on
   21  attributes              2   bits 0-2 compression, 3 log append time, 4 transactional,
                                   5 control, 6 base timestamp is a delete horizon
   23  last offset delta       4
   27  base timestamp          8
   35  max timestamp           8
   43  producer id             8   -1: not idempotent
   51  producer epoch          2
   53  base sequence           4
   57  records                 4   how many follow

Offset and epoch precede the checksummed part, so a broker sets them without touching the rest.
"""

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from headrace.protocol.checksum import crc32c
from headrace.protocol.compression import Buffer, Compression, compression_of
from headrace.protocol.errors import CorruptMessage
from headrace.protocol.ids import LeaderEpoch, Offset, ProducerId

MAGIC = 2
HEADER_SIZE = 61
OFFSET_SIZE = 8
LENGTH_END = 12  # a batch is `batch_length` bytes longer than this
CRC_START = 21
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

_make: Any = tuple.__new__  # what NamedTuple._make calls
_HEADER = struct.Struct(">qiibIhiqqqhii")
_CHECKSUMMED = struct.Struct(">hiqqqhii")
_OFFSET_AND_LENGTH = struct.Struct(">qi")
_OFFSET = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_CRC = struct.Struct(">I")

_COMPRESSION_BITS = 0b0000111
_LOG_APPEND_TIME_BIT = 0b0001000
_TRANSACTIONAL_BIT = 0b0010000
_CONTROL_BIT = 0b0100000
_DELETE_HORIZON_BIT = 0b1000000


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The fields of a batch header, without any check (see `read_batch`)."""

    base_offset: Offset
    batch_length: int
    leader_epoch: LeaderEpoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def compression(self) -> Compression:
        return compression_of(self.attributes)

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & _LOG_APPEND_TIME_BIT:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & _CONTROL_BIT)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Return the time from which compaction may remove the batch's tombstones, if a pass has set it."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON_BIT else None

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        return add_sequence(self.base_sequence, self.last_offset_delta)


def add_sequence(sequence: int, count: int) -> int:
    """Return the sequence number `count` after `sequence`: 2**31 - 1 is followed by 0."""
    return (sequence + count) & 0x7FFFFFFF if sequence != NO_SEQUENCE else NO_SEQUENCE


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Return the header at `position`, unchecked; raise struct.error if fewer than 61 bytes are left."""
    header: BatchHeader = _make(BatchHeader, _HEADER.unpack_from(data, position))
    return header


def read_attributes(data: Buffer) -> int:
    return data[CRC_START] << 8 | data[CRC_START + 1]


def read_base_offset(data: Buffer, position: int) -> int:
    offset: int = _OFFSET.unpack_from(data, position)[0]
    return offset


def read_offset_and_size(data: Buffer, position: int = 0) -> tuple[int, int]:
    offset, length = _OFFSET_AND_LENGTH.unpack_from(data, position)
    return offset, length + LENGTH_END


def read_batch(data: Buffer, position: int = 0) -> BatchHeader:
    """Return the header of the batch at `position` after checking magic, size and checksum.

    Raises CorruptMessage with the reason; reads no byte after `data`.
    """
    left = len(data) - position
    if left < HEADER_SIZE:
        raise CorruptMessage(
            f"{left} bytes are too few for a batch header of {HEADER_SIZE} (CORRUPT_MESSAGE)"
        )
    header: BatchHeader = _make(BatchHeader, _HEADER.unpack_from(data, position))
    if header.magic != MAGIC:
        raise CorruptMessage(f"batch magic is {header.magic}, expected {MAGIC} (CORRUPT_MESSAGE)")
    size = header.batch_length + LENGTH_END
    if not HEADER_SIZE <= size <= left:
        raise CorruptMessage(f"the batch size is {size} bytes, {left} are left (CORRUPT_MESSAGE)")
    crc = crc32c(memoryview(data)[position + CRC_START : position + size])
    if crc != header.crc:
        raise CorruptMessage(
            f"batch checksum is {crc:#010x}, header says {header.crc:#010x} (CORRUPT_MESSAGE)"
        )
    return header


def assign_offset(
    data: bytearray | memoryview, position: int, *, base_offset: int, leader_epoch: int
) -> None:
    """Set offset and leader epoch, in place; the checksum does not cover them."""
    _OFFSET.pack_into(data, position, base_offset)
    _INT32.pack_into(data, position + 12, leader_epoch)


def assign_append_time(data: bytearray | memoryview, position: int, size: int, now_ms: int) -> None:
    """Set the log append time, in place, with a new checksum."""
    attributes = struct.unpack_from(">h", data, position + CRC_START)[0] | _LOG_APPEND_TIME_BIT
    struct.pack_into(">h", data, position + CRC_START, attributes)
    _OFFSET.pack_into(data, position + 35, now_ms)
    _CRC.pack_into(data, position + 17, crc32c(memoryview(data)[position + CRC_START : position + size]))


def assign_max_timestamp(data: bytearray | memoryview, timestamp: int) -> None:
    """Set the max timestamp of a single batch, in place, with a new checksum."""
    _OFFSET.pack_into(data, 35, timestamp)
    _CRC.pack_into(data, 17, crc32c(memoryview(data)[CRC_START:]))


def build_batch(
    body: Buffer,
    *,
    base_offset: int,
    last_offset_delta: int,
    records_count: int,
    base_timestamp: int,
    max_timestamp: int,
    leader_epoch: int = NO_LEADER_EPOCH,
    compression: Compression = Compression.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    transactional: bool = False,
    control: bool = False,
    delete_horizon: bool = False,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
) -> bytearray:
    """Return a batch with its checksum around `body`, the encoded and compressed records."""
    attributes = compression & _COMPRESSION_BITS
    attributes |= _LOG_APPEND_TIME_BIT if timestamp_type else 0
    attributes |= _TRANSACTIONAL_BIT if transactional else 0
    attributes |= _CONTROL_BIT if control else 0
    attributes |= _DELETE_HORIZON_BIT if delete_horizon else 0
    checksummed = _CHECKSUMMED.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        records_count,
    )
    crc = crc32c(body, crc32c(checksummed))
    length = HEADER_SIZE - LENGTH_END + len(body)
    batch = bytearray(struct.pack(">qiibI", base_offset, length, leader_epoch, MAGIC, crc))
    batch += checksummed
    batch += body
    return batch
