"""Checks of a client's batch that need only its header.

`storage.inspection` reads the records, for the topics that require it.
"""

from headrace.protocol.batch import HEADER_SIZE, MAGIC, BatchHeader, TimestampType, read_batch
from headrace.protocol.compression import max_unpacked_bytes
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import MAX_UNPACKED_BYTES, SMALLEST_RECORD
from headrace.storage.config import LogConfig
from headrace.storage.errors import InvalidTimestamp, MessageTooLarge

_MAGIC_POSITION = 16
_MAX_RECORDS = MAX_UNPACKED_BYTES // (SMALLEST_RECORD + 1)  # each is preceded by at least one byte of length


def validated_client_batch(data: memoryview, config: LogConfig, now_ms: int) -> BatchHeader:
    """Return the header of the single batch in `data`, or raise the error that Kafka responds with."""
    if len(data) > _MAGIC_POSITION and data[_MAGIC_POSITION] in range(MAGIC):
        raise InvalidRecord(
            f"message format {data[_MAGIC_POSITION]} is not supported, expected {MAGIC} (INVALID_RECORD)"
        )
    if len(data) > config.max_message_bytes:  # before the checksum, which would be wasted work
        raise MessageTooLarge(len(data), limit=config.max_message_bytes)
    header = read_batch(data)
    if header.size != len(data):
        raise InvalidRecord(
            f"a partition's data must be one batch: {len(data) - header.size} bytes follow it "
            "(INVALID_RECORD)"
        )
    if header.base_offset != 0 and not config.append_expected_offset:
        raise InvalidRecord(f"a client's batch starts at offset 0, got {header.base_offset} (INVALID_RECORD)")
    _check_header(header)
    _check_timestamps(header, config, now_ms)
    return header


def check_expected_offset(header: BatchHeader, log_end_offset: int) -> None:
    """Raise InvalidRecord unless the batch names the log end offset: the compare-and-append of a writer."""
    if header.base_offset != log_end_offset:
        raise InvalidRecord(
            f"the batch expects offset {header.base_offset}, the log end offset is {log_end_offset}: "
            "read on, and decide again (INVALID_RECORD)"
        )


def _check_header(header: BatchHeader) -> None:
    if header.records_count < 1:
        raise InvalidRecord(
            f"the batch has {header.records_count} records, expected at least 1 (INVALID_RECORD)"
        )
    if header.last_offset_delta != header.records_count - 1:
        raise InvalidRecord(
            f"a batch of {header.records_count} records has last offset delta {header.last_offset_delta} "
            "(INVALID_RECORD)"
        )
    payload_bytes = header.size - HEADER_SIZE
    unpacked_bytes = max_unpacked_bytes(header.compression, payload_bytes)  # raises for an unknown codec
    if header.records_count > min(unpacked_bytes // (SMALLEST_RECORD + 1), _MAX_RECORDS):
        raise InvalidRecord(
            f"{header.records_count} records cannot be in {payload_bytes} bytes "
            f"(compression: {header.compression.name.lower()}) (INVALID_RECORD)"
        )
    if header.is_control:
        raise InvalidRecord("a client cannot write control records (INVALID_RECORD)")
    if header.delete_horizon_ms is not None:
        raise InvalidRecord("a client cannot set a delete horizon (INVALID_RECORD)")
    if header.has_producer:
        if header.producer_id < 0 or header.producer_epoch < 0 or header.base_sequence < 0:
            raise InvalidRecord(
                f"producer id {header.producer_id}, epoch {header.producer_epoch} and "
                f"sequence {header.base_sequence} do not go together (INVALID_RECORD)"
            )
    elif header.is_transactional:
        raise InvalidRecord("a transactional batch needs a producer id (INVALID_RECORD)")


def _check_timestamps(header: BatchHeader, config: LogConfig, now_ms: int) -> None:
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        return  # the broker's own time replaces the client's
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidTimestamp("a client cannot claim the broker's append time")
    early = now_ms - header.base_timestamp
    if header.base_timestamp >= 0 and early > config.message_timestamp_before_max_ms:
        raise InvalidTimestamp(f"timestamp {header.base_timestamp} is {early} ms before the broker's clock")
    late = header.max_timestamp - now_ms
    if late > config.message_timestamp_after_max_ms:
        raise InvalidTimestamp(f"timestamp {header.max_timestamp} is {late} ms ahead of the broker's clock")
