import struct

import pytest
from crc32c import crc32c

from headrace.protocol.batch import (
    CRC_START,
    HEADER_SIZE,
    NO_SEQUENCE,
    TimestampType,
    add_sequence,
    assign_append_time,
    assign_offset,
    build_batch,
    read_batch,
    read_header,
    read_offset_and_size,
)
from headrace.protocol.compression import Compression
from headrace.protocol.errors import CorruptMessage, UnsupportedCompressionType
from support.records import make_batch

BATCH = bytes(make_batch(3, base_offset=7))


def test_every_field_of_the_header_is_at_kafkas_place() -> None:
    batch = build_batch(
        b"body",
        base_offset=2**40 + 1,
        last_offset_delta=9,
        records_count=10,
        base_timestamp=2**41 + 2,
        max_timestamp=2**41 + 3,
        leader_epoch=17,
        compression=Compression.LZ4,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        transactional=True,
        control=True,
        delete_horizon=True,
        producer_id=2**33 + 4,
        producer_epoch=5,
        base_sequence=6,
    )

    assert struct.unpack_from(">q", batch, 0) == (2**40 + 1,)
    assert struct.unpack_from(">i", batch, 8) == (len(batch) - 12,)
    assert struct.unpack_from(">i", batch, 12) == (17,)
    assert batch[16] == 2
    assert struct.unpack_from(">I", batch, 17) == (crc32c(batch[21:]),)
    assert struct.unpack_from(">h", batch, 21) == (0b1111011,)
    assert struct.unpack_from(">i", batch, 23) == (9,)
    assert struct.unpack_from(">q", batch, 27) == (2**41 + 2,)
    assert struct.unpack_from(">q", batch, 35) == (2**41 + 3,)
    assert struct.unpack_from(">q", batch, 43) == (2**33 + 4,)
    assert struct.unpack_from(">h", batch, 51) == (5,)
    assert struct.unpack_from(">i", batch, 53) == (6,)
    assert struct.unpack_from(">i", batch, 57) == (10,)
    assert batch[HEADER_SIZE:] == b"body"


def test_what_was_built_is_what_the_header_says() -> None:
    header = read_batch(
        build_batch(
            b"body",
            base_offset=100,
            last_offset_delta=9,
            records_count=10,
            base_timestamp=50,
            max_timestamp=60,
            compression=Compression.ZSTD,
            transactional=True,
            producer_id=4,
            producer_epoch=5,
            base_sequence=2**31 - 3,
        )
    )

    assert header.size == HEADER_SIZE + 4
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 109, 110)
    assert (header.base_timestamp, header.max_timestamp) == (50, 60)
    assert header.compression is Compression.ZSTD
    assert header.timestamp_type is TimestampType.CREATE_TIME
    assert header.is_transactional
    assert not header.is_control
    assert header.delete_horizon_ms is None
    assert header.has_producer
    assert (header.producer_id, header.producer_epoch) == (4, 5)
    assert header.last_sequence == 6  # ten after 2**31 - 3 begin again with 0


@pytest.mark.parametrize(
    ("sequence", "count", "expected"),
    [
        (0, 0, 0),
        (0, 5, 5),
        (2**31 - 1, 0, 2**31 - 1),
        (2**31 - 1, 1, 0),
        (2**31 - 2, 5, 3),
        (3, -5, 2**31 - 2),
        (NO_SEQUENCE, 7, NO_SEQUENCE),
    ],
)
def test_sequences_start_over_after_the_largest(sequence: int, count: int, expected: int) -> None:
    assert add_sequence(sequence, count) == expected


def test_a_batch_without_a_producer_has_no_sequences() -> None:
    header = read_batch(BATCH)

    assert not header.has_producer
    assert header.last_sequence == NO_SEQUENCE


def test_compression_types_five_to_seven_do_not_exist() -> None:
    batch = bytearray(BATCH)
    for number in (5, 6, 7):
        batch[22] = number
        with pytest.raises(UnsupportedCompressionType, match=str(number)):
            _ = read_header(batch).compression


def test_offset_and_epoch_are_set_without_touching_the_checksum() -> None:
    data = bytearray(b"before" + BATCH + b"after")

    assign_offset(data, 6, base_offset=2**50, leader_epoch=9)

    header = read_batch(memoryview(data)[6:-5])
    assert (header.base_offset, header.leader_epoch) == (2**50, 9)
    assert header[4:] == read_header(BATCH)[4:]
    assert bytes(data[6 + 16 :]) == BATCH[16:] + b"after"
    assert data[:6] == b"before"


def test_the_append_time_is_set_with_a_new_checksum() -> None:
    data = bytearray(b"before" + BATCH + b"after")

    assign_append_time(data, 6, len(BATCH), 2**42)

    header = read_batch(data, 6)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.max_timestamp == 2**42
    assert header.base_timestamp == read_header(BATCH).base_timestamp
    assert header.crc == crc32c(bytes(data[6 + CRC_START : -5]))
    assert data[-5:] == b"after"
    assert data[:6] == b"before"


def test_a_step_from_batch_to_batch_needs_offset_and_size_only() -> None:
    assert read_offset_and_size(b"x" + BATCH, 1) == (7, len(BATCH))


@pytest.mark.parametrize("position", [0, 5])
def test_a_batch_cut_anywhere_is_refused(position: int) -> None:
    data = bytes(position) + BATCH
    for end in range(position, len(data)):
        with pytest.raises(CorruptMessage):
            read_batch(data[:end], position)
    assert read_batch(data, position).base_offset == 7


def test_a_flipped_bit_anywhere_but_in_offset_and_epoch_is_refused() -> None:
    unprotected = {*range(8), *range(12, 16)}
    for place in set(range(len(BATCH))) - unprotected:
        for bit in range(8):
            damaged = bytearray(BATCH)
            damaged[place] ^= 1 << bit
            with pytest.raises(CorruptMessage):
                read_batch(damaged)


@pytest.mark.parametrize("length", [-1, -(2**31), 0, HEADER_SIZE - 13, 2**31 - 1])
def test_an_absurd_length_is_refused(length: int) -> None:
    damaged = bytearray(BATCH)
    struct.pack_into(">i", damaged, 8, length)

    with pytest.raises(CorruptMessage, match="the batch size is"):
        read_batch(damaged)
