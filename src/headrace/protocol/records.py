"""The records of a batch. A broker reads them only for compaction, inspection, and its internal topics.

A record is its length, an unused attributes byte, a timestamp delta, an offset delta, then key, value and
headers, each preceded by a length; every number except the attributes is a zig-zag varint, and a length of -1
means null. The deltas count from the batch's base timestamp and base offset.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple, TypedDict, Unpack

from headrace.protocol.batch import HEADER_SIZE, BatchHeader, TimestampType, build_batch
from headrace.protocol.compression import Buffer, Compression, compress, decompress
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.varint import encode_varint, read_varint

SMALLEST_RECORD = 6  # attributes, two deltas, null key, null value, no headers
MAX_HEADERS = 500_000  # of a batch that is searched for certain headers
_SLICE_BYTES = 1 << 20
MAX_UNPACKED_BYTES = 128 * 1024 * 1024  # of one batch; a kilobyte of zstd can decompress to gigabytes

WantedHeaders = Sequence[tuple[bytes, bytes | None]]


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int = -1
    offset: int = -1


class RawRecord(NamedTuple):
    """A record for compaction: offset, timestamp and key, and its undecoded bytes."""

    offset: int
    timestamp: int
    key: bytes | None
    has_value: bool
    data: memoryview


class _BatchOptions(TypedDict, total=False):
    leader_epoch: int
    transactional: bool
    control: bool
    producer_id: int
    producer_epoch: int
    base_sequence: int


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    **options: Unpack[_BatchOptions],
) -> bytearray:
    """Return a batch of `records` from `base_offset` on, ready to append or to send."""
    if not records:
        raise InvalidRecord("a batch needs at least one record (INVALID_RECORD)")
    base_timestamp = records[0].timestamp
    body = b"".join(
        _encode_record(record, delta, record.timestamp - base_timestamp)
        for delta, record in enumerate(records)
    )
    return build_batch(
        compress(compression, body),
        base_offset=base_offset,
        last_offset_delta=len(records) - 1,
        records_count=len(records),
        base_timestamp=base_timestamp,
        max_timestamp=max(record.timestamp for record in records),
        compression=compression,
        **options,
    )


def decode_batch(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[Record]:
    """Yield every record of `batch`. `header` must be the batch's own, with a valid checksum."""
    for position, end, body in _spans(batch, header, max_bytes):
        timestamp_delta, at = read_varint(body, position + 1)
        offset_delta, at = read_varint(body, at)
        key, at = _read_bytes(body, at, end)
        value, at = _read_bytes(body, at, end)
        headers = [(_name(name), value) for name, value in _headers(body, at, end)]
        yield Record(key, value, headers, _timestamp(header, timestamp_delta), _offset(header, offset_delta))


def raw_records(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[RawRecord]:
    """Yield every record of `batch` with key and offset decoded and the rest as bytes."""
    for position, end, body in _spans(batch, header, max_bytes):
        timestamp_delta, at = read_varint(body, position + 1)
        offset_delta, at = read_varint(body, at)
        key, at = _read_bytes(body, at, end)
        value_size, at = read_varint(body, at)
        if max(value_size, 0) > end - at:
            raise InvalidRecord(f"a value claims {value_size} bytes, the record has {end - at} left")
        yield RawRecord(
            _offset(header, offset_delta),
            _timestamp(header, timestamp_delta),
            key,
            value_size >= 0,
            body[position:end],
        )


def keys_and_values(
    batch: Buffer, header: BatchHeader, *, max_bytes: int = MAX_UNPACKED_BYTES
) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Yield key and value of every record, twice as fast as `decode_batch`: the rest is skipped."""
    for position, end, body in _spans(batch, header, max_bytes):
        _, at = read_varint(body, position + 1)
        _, at = read_varint(body, at)
        key, at = _read_bytes(body, at, end)
        value, at = _read_bytes(body, at, end)
        if at >= end:
            raise InvalidRecord(f"a record ends {at - end + 1} bytes before its headers")
        yield key, value


def with_headers(
    batch: Buffer,
    header: BatchHeader,
    names: Collection[bytes],
    *,
    max_bytes: int = MAX_UNPACKED_BYTES,
    max_headers: int = MAX_HEADERS,
) -> Iterator[tuple[bytes | None, bytes | None, WantedHeaders]]:
    """Yield key and value of every record, and its headers with the given names.

    It costs no more than `keys_and_values` if no record has such a header. If one has, InvalidRecord is
    raised if the batch has more than `max_headers` of any name: a few bytes may contain millions.
    """
    left = None
    for position, end, body in _spans(batch, header, max_bytes):
        if left is None:
            left = max_headers if _has_any(body, names) else -1
        _, at = read_varint(body, position + 1)
        _, at = read_varint(body, at)
        key, at = _read_bytes(body, at, end)
        value, at = _read_bytes(body, at, end)
        if at >= end:
            raise InvalidRecord(f"a record ends {at - end + 1} bytes before its headers")
        found: WantedHeaders = ()
        if left >= 0 and end - at > 1:
            count, _ = read_varint(body, at)
            left -= count
            if left < 0:
                raise InvalidRecord(f"a batch has more than {max_headers:,} headers")
            found = [each for each in _headers(body, at, end) if each[0] in names]
        yield key, value, found


def rebase_timestamp(record: RawRecord, base_timestamp: int) -> bytes:
    """Return the record's bytes with its timestamp relative to another base, preceded by their length."""
    _, at = read_varint(record.data, 1)
    body = b"".join((record.data[:1], encode_varint(record.timestamp - base_timestamp), record.data[at:]))
    return encode_varint(len(body)) + body


def _timestamp(header: BatchHeader, delta: int) -> int:
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp
    timestamp = header.base_timestamp + delta
    if not -(2**63) <= timestamp < 2**63:
        raise InvalidRecord(f"a record's timestamp is {timestamp}, which 64 bits cannot hold")
    return timestamp


def _offset(header: BatchHeader, delta: int) -> int:
    if not 0 <= delta <= header.last_offset_delta:
        raise InvalidRecord(f"an offset delta is {delta}, its batch ends at {header.last_offset_delta}")
    return header.base_offset + delta


def _spans(batch: Buffer, header: BatchHeader, max_bytes: int) -> Iterator[tuple[int, int, memoryview]]:
    """Yield start, end and buffer of each record; raise InvalidRecord if counts and sizes do not add up."""
    if header.records_count == 0:
        return  # compaction has left only the header of the batch, for its sequence numbers
    packed = memoryview(batch)[HEADER_SIZE : header.size]
    body = memoryview(decompress(header.compression, packed, max_bytes=max_bytes))
    position = 0
    for _ in range(header.records_count):
        size, position = read_varint(body, position)
        end = position + size
        if size < SMALLEST_RECORD or end > len(body):
            raise InvalidRecord(f"a record claims {size} bytes, the batch has {len(body) - position} left")
        yield position, end, body
        position = end
    if position != len(body):
        raise InvalidRecord(f"{len(body) - position} bytes follow the last of {header.records_count} records")


def _read_bytes(body: memoryview, at: int, end: int) -> tuple[bytes | None, int]:
    size, at = read_varint(body, at)
    if size < 0:
        return None, at
    if size > end - at:
        raise InvalidRecord(f"a field claims {size} bytes, the record has {end - at} left")
    return bytes(body[at : at + size]), at + size


def _has_any(body: memoryview, names: Collection[bytes]) -> bool:
    """Return whether the data contains one of the names. Searches in slices, to release the GIL between."""
    wanted = re.compile(b"|".join(map(re.escape, names)))
    longer = max(map(len, names))
    return any(
        wanted.search(body, start, start + _SLICE_BYTES + longer) is not None
        for start in range(0, len(body), _SLICE_BYTES)
    )


def _headers(body: memoryview, at: int, end: int) -> Iterator[tuple[bytes, bytes | None]]:
    """Return the headers of the record that ends at `end`, with their keys as bytes."""
    count, at = read_varint(body, at)
    if not 0 <= count <= (end - at) // 2:
        raise InvalidRecord(f"a record claims {count} headers in {end - at} bytes")
    for _ in range(count):
        name, at = _read_bytes(body, at, end)
        if name is None:
            raise InvalidRecord("a header has no key")
        value, at = _read_bytes(body, at, end)
        yield name, value
    if at != end:
        raise InvalidRecord(f"a record has {end - at} bytes after its last header")


def _name(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise InvalidRecord(f"a header's key is not UTF-8: {name!r}") from None


def _encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        *_nullable(record.key),
        *_nullable(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts += _nullable(name.encode())
        parts += _nullable(value)
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _nullable(data: bytes | None) -> tuple[bytes, bytes]:
    return (encode_varint(-1), b"") if data is None else (encode_varint(len(data)), data)
