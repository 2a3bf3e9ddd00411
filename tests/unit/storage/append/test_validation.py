import struct
from typing import Any

import pytest
from crc32c import crc32c

from headrace.protocol.batch import TimestampType, build_batch
from headrace.protocol.compression import Compression, compress
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.storage.append.validation import validated_client_batch
from headrace.storage.config import LogConfig
from support.records import TIMESTAMP, make_batch

DEFAULT = LogConfig()
NOW = TIMESTAMP


def refusal(data: bytes | bytearray, config: LogConfig = DEFAULT) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as refused:
        validated_client_batch(memoryview(data), config, NOW)
    return refused.value.code, str(refused.value)


def changed(layout: str, position: int, value: int, **options: Any) -> bytearray:
    """A batch with one field set to `value` and a checksum that holds."""
    data = make_batch(3, **options)
    struct.pack_into(layout, data, position, value)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return data


@pytest.mark.parametrize("compression", Compression)
def test_a_sound_batch_is_accepted(compression: Compression) -> None:
    header = validated_client_batch(memoryview(make_batch(3, compression=compression)), DEFAULT, NOW)

    assert header.records_count == 3


def test_a_bad_checksum_is_corrupt() -> None:
    data = make_batch()
    data[-1] ^= 1

    code, why = refusal(data)
    assert code is ErrorCode.CORRUPT_MESSAGE
    assert "checksum" in why


@pytest.mark.parametrize("size", [0, 1, 16, 17, 60, 61, 70])
def test_a_part_of_a_batch_is_corrupt(size: int) -> None:
    assert refusal(make_batch()[:size])[0] is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_an_older_format_is_refused_as_invalid(magic: int) -> None:
    code, why = refusal(changed(">b", 16, magic))
    assert code is ErrorCode.INVALID_RECORD
    assert f"format {magic}" in why


@pytest.mark.parametrize("magic", [3, -1])
def test_an_unknown_format_is_corrupt(magic: int) -> None:
    assert refusal(changed(">b", 16, magic))[0] is ErrorCode.CORRUPT_MESSAGE


def test_a_batch_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    data = make_batch()
    size = len(data)
    validated_client_batch(memoryview(data), LogConfig(max_message_bytes=size), NOW)

    code, why = refusal(data, LogConfig(max_message_bytes=size - 1))
    assert code is ErrorCode.MESSAGE_TOO_LARGE
    assert why == f"the batch has {size} bytes, max.message.bytes is {size - 1} (MESSAGE_TOO_LARGE)"


def test_two_batches_are_refused() -> None:
    assert refusal(make_batch() * 2)[0] is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("layout", "position", "value"),
    [
        (">q", 0, 5),  # base offset
        (">i", 23, 1),  # last offset delta
        (">i", 23, -1),
        (">i", 57, 0),  # records
        (">i", 57, 4),
        (">i", 57, -1),
        (">h", 21, 0b0100000),  # control
        (">h", 21, 0b1000000),  # delete horizon
        (">h", 21, 0b0010000),  # transactional without a producer
        (">q", 43, 7),  # a producer without epoch and sequence
        (">q", 43, -2),
    ],
)
def test_a_header_that_cannot_be_is_refused(layout: str, position: int, value: int) -> None:
    assert refusal(changed(layout, position, value))[0] is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(("producer_epoch", "base_sequence"), [(-1, 0), (0, -1), (-1, -1)])
def test_a_producer_needs_epoch_and_sequence(producer_epoch: int, base_sequence: int) -> None:
    data = make_batch(producer_id=7, producer_epoch=producer_epoch, base_sequence=base_sequence)

    assert refusal(data)[0] is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("number", [5, 6, 7])
def test_an_unknown_compression_is_refused(number: int) -> None:
    assert refusal(changed(">h", 21, number))[0] is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_timestamps_may_be_as_far_from_now_as_the_topic_allows() -> None:
    config = LogConfig(message_timestamp_before_max_ms=100, message_timestamp_after_max_ms=50)
    for timestamp in (NOW - 100, NOW, NOW + 50, -1):
        validated_client_batch(memoryview(make_batch(timestamps=timestamp)), config, NOW)
    for timestamp in (NOW - 101, NOW + 51):
        code, why = refusal(make_batch(timestamps=timestamp), config)
        assert code is ErrorCode.INVALID_TIMESTAMP
        assert str(timestamp) in why


def test_a_client_cannot_claim_the_brokers_time() -> None:
    assert refusal(changed(">h", 21, 0b0001000))[0] is ErrorCode.INVALID_TIMESTAMP


def test_no_timestamp_matters_where_the_broker_sets_it() -> None:
    config = LogConfig(
        message_timestamp_type=TimestampType.LOG_APPEND_TIME, message_timestamp_after_max_ms=50
    )
    for data in (make_batch(timestamps=NOW * 2), changed(">h", 21, 0b0001000)):
        validated_client_batch(memoryview(data), config, NOW)


def claiming(count: int, payload: bytes, compression: Compression) -> bytearray:
    """A batch whose header and checksum hold and whose payload is no record at all."""
    return build_batch(
        payload,
        base_offset=0,
        last_offset_delta=count - 1,
        records_count=count,
        base_timestamp=NOW,
        max_timestamp=NOW,
        compression=compression,
    )


@pytest.mark.parametrize("compression", Compression)
def test_more_records_than_the_payload_can_hold_are_refused(compression: Compression) -> None:
    code, why = refusal(claiming(2**31 - 1, b"x" * 1000, compression))

    assert code is ErrorCode.INVALID_RECORD
    assert f"2147483647 records cannot be in 1000 bytes (compression: {compression.name.lower()})" in why


def test_a_batch_without_a_payload_is_refused() -> None:
    for count in (1, 2):
        assert refusal(claiming(count, b"", Compression.NONE))[0] is ErrorCode.INVALID_RECORD


def test_a_record_takes_seven_bytes_at_least() -> None:
    validated_client_batch(memoryview(claiming(3, bytes(21), Compression.NONE)), DEFAULT, NOW)

    assert refusal(claiming(4, bytes(27), Compression.NONE))[0] is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("compression", [each for each in Compression if each], ids=lambda each: each.name)
def test_what_compresses_as_well_as_anything_can_is_accepted(compression: Compression) -> None:
    """The bound on the number of records must never refuse a batch that unpacks to them."""
    count = 300_000
    payload = bytes(compress(compression, bytes(7 * count)))

    header = validated_client_batch(memoryview(claiming(count, payload, compression)), DEFAULT, NOW)

    assert header.records_count == count
