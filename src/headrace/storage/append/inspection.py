"""Preparing a client's batch for an append: checks of its header and, if the topic requires it, its records.

`prepare` is pure, blocks, and may run in any thread. A broker runs it on its event loop only for batches of
which it reads only the header, and for small ones (`is_quick`): a few kilobytes can decompress to millions of
records. The work for one batch is bounded in bytes, records, record headers and CPU time.
"""

import time
from typing import Final, NamedTuple

from headrace.protocol.batch import (
    HEADER_SIZE,
    BatchHeader,
    TimestampType,
    assign_max_timestamp,
    build_batch,
    read_attributes,
    read_header,
)
from headrace.protocol.compression import (
    Buffer,
    Compression,
    UnpackedTooLarge,
    compress,
    compression_bits,
    decompress,
)
from headrace.protocol.errors import InvalidRecord, InvalidRecords
from headrace.protocol.record_walk import TooManyHeaders, Walked, walk_records
from headrace.storage.append.batches import writable
from headrace.storage.append.validation import validated_client_batch
from headrace.storage.config import LogConfig
from headrace.storage.errors import InvalidTimestamp, MessageTooLarge, TooMuchToInspect

MAX_RECORDS: Final = 100_000  # of a batch whose records are read
MAX_HEADERS: Final = 500_000  # of all its records together
MAX_INSPECTED_BYTES: Final = 32 * 1024 * 1024  # of its records; twice max.message.bytes if that is more
MAX_CPU_S: Final = 2.0  # for recompressing them
MAX_EXPECTED_OFFSET_RECORDS: Final = 1000  # of a batch for a topic with headrace.append.expected.offset
QUICK_BYTES: Final = 4096  # an uncompressed batch of this size has at most 576 records: half a millisecond


class PreparedBatch(NamedTuple):
    """A batch that can be appended to a log while the log's configuration is `config`."""

    data: memoryview
    header: BatchHeader
    config: LogConfig
    received_bytes: int  # the size that the client sent, before recompression


def reads_records(data: Buffer, config: LogConfig) -> bool:
    """Return whether `prepare` reads the records of this batch, and not only its header."""
    if not config.reads_records or len(data) < HEADER_SIZE:
        return False
    if config.compact or config.append_expected_offset or config.validate_records:
        return True
    return compression_bits(read_attributes(data)) != config.compression


def is_quick(data: Buffer) -> bool:
    """Return whether `prepare` takes less than a millisecond even if it reads the records of this batch."""
    if len(data) < HEADER_SIZE:
        return True
    return len(data) <= QUICK_BYTES and compression_bits(read_attributes(data)) == Compression.NONE


def prepare(data: Buffer, config: LogConfig, now_ms: int) -> PreparedBatch:
    """Return the batch ready for `Log.append_prepared`, or raise the error that Kafka responds with.

    `data` may be changed in place unless it is read-only.
    """
    view = writable(data)
    header = validated_client_batch(view, config, now_ms)
    received_bytes = len(view)
    if config.reads_records and reads_records(view, config):
        view, header = _inspected(view, header, config, now_ms)
    return PreparedBatch(view, header, config, received_bytes)


def _inspected(
    view: memoryview, header: BatchHeader, config: LogConfig, now_ms: int
) -> tuple[memoryview, BatchHeader]:
    """Return the batch with its records checked, and recompressed if the topic requires it."""
    body = _unpacked(view, header, config)
    walked = _checked(body, header, config, now_ms)
    creates = config.message_timestamp_type is TimestampType.CREATE_TIME
    if creates and walked.max_timestamp != header.max_timestamp:  # Kafka corrects it too
        assign_max_timestamp(view, walked.max_timestamp)
        header = read_header(view)
    if config.compression is not None and config.compression is not header.compression:
        view = _recompressed(body, header, config.compression, max_bytes=config.max_message_bytes)
        header = read_header(view)
    return view, header


def _unpacked(view: memoryview, header: BatchHeader, config: LogConfig) -> Buffer:
    max_records = MAX_EXPECTED_OFFSET_RECORDS if config.append_expected_offset else MAX_RECORDS
    if header.records_count > max_records:
        raise TooMuchToInspect(
            f"the batch has {header.records_count:,} records, {max_records:,} is the most for a topic whose "
            "records the broker reads (MESSAGE_TOO_LARGE)"
        )
    max_bytes = max(MAX_INSPECTED_BYTES, 2 * config.max_message_bytes)
    try:
        return decompress(header.compression, view[HEADER_SIZE : header.size], max_bytes=max_bytes)
    except UnpackedTooLarge as error:
        raise TooMuchToInspect(str(error)) from error


def _checked(body: Buffer, header: BatchHeader, config: LogConfig, now_ms: int) -> Walked:
    """Check every record in one pass; raise an error that names each invalid one."""
    try:
        if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
            walked = walk_records(
                body, header, max_headers=MAX_HEADERS, utf8_names=config.append_expected_offset
            )
        else:
            walked = walk_records(
                body,
                header,
                max_headers=MAX_HEADERS,
                earliest=now_ms - config.message_timestamp_before_max_ms,
                latest=now_ms + config.message_timestamp_after_max_ms,
                utf8_names=config.append_expected_offset,
            )
    except TooManyHeaders as error:
        raise TooMuchToInspect(str(error)) from error
    if walked.out_of_range and config.message_timestamp_type is TimestampType.CREATE_TIME:
        why = f"is not within {config.message_timestamp_before_max_ms} ms before and "
        why += f"{config.message_timestamp_after_max_ms} ms after the broker's clock, {now_ms}"
        raise InvalidTimestamp(
            f"{walked.out_of_range_count} records of the batch have an invalid timestamp",
            [(index, f"timestamp {timestamp} {why}") for index, timestamp in walked.out_of_range],
        )
    if walked.without_key and config.compact:
        why = "a compacted topic cannot accept a record without a key"
        raise InvalidRecords([(index, why) for index in walked.without_key], count=walked.without_key_count)
    return walked


def _recompressed(
    body: Buffer, header: BatchHeader, compression: Compression, *, max_bytes: int
) -> memoryview:
    """Return the batch with its records recompressed; raise MessageTooLarge if it becomes too large."""
    deadline = time.thread_time() + MAX_CPU_S

    def check(size: int) -> None:
        if size + HEADER_SIZE > max_bytes:  # the size only grows
            raise MessageTooLarge(size + HEADER_SIZE, limit=max_bytes)
        if time.thread_time() > deadline:
            raise InvalidRecord(
                f"compressing {len(body)} bytes of records with {compression.name.lower()} takes more than "
                f"{MAX_CPU_S:g} s of CPU time"
            )

    packed = compress(compression, body, progress=check)
    check(len(packed))
    return memoryview(
        build_batch(
            packed,
            base_offset=header.base_offset,
            last_offset_delta=header.last_offset_delta,
            records_count=header.records_count,
            base_timestamp=header.base_timestamp,
            max_timestamp=header.max_timestamp,
            leader_epoch=header.leader_epoch,
            compression=compression,
            timestamp_type=header.timestamp_type,
            transactional=header.is_transactional,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
        )
    )
