"""The compiled part of the source: it decodes the records of a batch into the buffers of Arrow columns.

Nothing here is a Python object. A column of bytes has `ends` (int32, one more than rows), `data`, and a
bitmap of rows that are not null; a list column has only `ends` and the bitmap. The caller makes room for
every row and byte of the batch.
"""

from typing import Final

import numpy as np

from headrace.tables.reader.compiled import Bytes, Ints, Longs, compiled, copy

# Indexes into `used`: what has been written so far.
ROWS: Final = 0
KEY_BYTES: Final = 1
VALUE_BYTES: Final = 2
HEADERS: Final = 3
HEADER_KEY_BYTES: Final = 4
HEADER_VALUE_BYTES: Final = 5
COUNTS: Final = 6

# Bits for the columns to read; the others are skipped.
WANT_KEY: Final = 1
WANT_VALUE: Final = 2
WANT_HEADERS: Final = 4

OK: Final = 0
BROKEN: Final = 1
"""A length or a number is invalid."""

_SMALLEST_RECORD: Final = 6


@compiled
def _varint(body: Bytes, at: int, end: int) -> tuple[int, int]:
    """Return the zig-zag varint at `at`, and the index after it; -1 if it has no end."""
    if at < end and body[at] < 128:
        short = np.int64(body[at])
        return (short >> 1) ^ -(short & 1), at + 1
    raw = np.uint64(0)
    shift = np.uint64(0)
    while at < end and shift < 70:
        byte = body[at]
        at += 1
        raw |= np.uint64(byte & 127) << shift
        if byte < 128:
            return np.int64(raw >> np.uint64(1)) ^ -np.int64(raw & np.uint64(1)), at
        shift += np.uint64(7)
    return np.int64(0), np.int64(-1)


@compiled
def walk(  # noqa: C901, PLR0912, PLR0915, PLR0917  one loop over bytes, whose calls are inlined
    body: Bytes,  # the records of one batch, decompressed
    count: int,
    base_offset: int,
    last_delta: int,  # of the last record's offset
    base_timestamp: int,  # in milliseconds
    append_time: int,  # of all records; -1: each has its own timestamp
    first: int,  # the first offset to read
    last: int,  # the offset after the last one
    wanted: int,
    used: Longs,  # see above
    offsets: Longs,
    timestamps: Longs,  # in microseconds
    keys: tuple[Ints, Bytes, Bytes],  # ends, data, not null
    values: tuple[Ints, Bytes, Bytes],  # ends, data, not null
    headers: tuple[Ints, Bytes, Ints, Bytes, Ints, Bytes, Bytes],  # ends, not null; keys; values, not null
) -> int:
    """Add the records of a batch to the columns; return OK, or BROKEN without a change of `used`."""
    key_ends, key_data, key_set = keys
    value_ends, value_data, value_set = values
    header_ends, header_set, name_ends, name_data, content_ends, content_data, content_set = headers
    row = used[0]
    key_at = used[1]
    value_at = used[2]
    header_at = used[3]
    name_at = used[4]
    content_at = used[5]
    size_of_body = len(body)
    at = np.int64(0)
    for _ in range(count):
        size, at = _varint(body, at, size_of_body)
        if at < 0 or size < _SMALLEST_RECORD or size > size_of_body - at:
            return BROKEN
        end = at + size
        timestamp_delta, at = _varint(body, at + 1, end)
        if at < 0:
            return BROKEN
        offset_delta, at = _varint(body, at, end)
        if at < 0 or offset_delta < 0 or offset_delta > last_delta:
            return BROKEN
        offset = base_offset + offset_delta
        if offset < first or offset >= last:
            at = end
            continue
        offsets[row] = offset
        timestamps[row] = (append_time if append_time >= 0 else base_timestamp + timestamp_delta) * 1000
        size, at = _varint(body, at, end)
        if at < 0 or size > end - at:
            return BROKEN
        if size >= 0:
            if wanted & WANT_KEY:
                copy(body, at, size, key_data, key_at)
                key_at += size
                key_set[row >> 3] |= np.uint8(1 << (row & 7))
            at += size
        size, at = _varint(body, at, end)
        if at < 0 or size > end - at:
            return BROKEN
        if size >= 0:
            if wanted & WANT_VALUE:
                copy(body, at, size, value_data, value_at)
                value_at += size
                value_set[row >> 3] |= np.uint8(1 << (row & 7))
            at += size
        if wanted & WANT_KEY:
            key_ends[row + 1] = key_at
        if wanted & WANT_VALUE:
            value_ends[row + 1] = value_at
        if wanted & WANT_HEADERS:
            number, at = _varint(body, at, end)
            if at < 0 or number < 0 or number > end - at:
                return BROKEN
            if number > 0:
                header_set[row >> 3] |= np.uint8(1 << (row & 7))
            for _ in range(number):
                size, at = _varint(body, at, end)
                if at < 0 or size < 0 or size > end - at:
                    return BROKEN
                copy(body, at, size, name_data, name_at)
                name_at += size
                name_ends[header_at + 1] = name_at
                at += size
                size, at = _varint(body, at, end)
                if at < 0 or size > end - at:
                    return BROKEN
                if size >= 0:
                    copy(body, at, size, content_data, content_at)
                    content_at += size
                    content_set[header_at >> 3] |= np.uint8(1 << (header_at & 7))
                    at += size
                content_ends[header_at + 1] = content_at
                header_at += 1
            header_ends[row + 1] = header_at
            if at != end:
                return BROKEN
        at = end
        row += 1
    if at != size_of_body:
        return BROKEN
    used[0] = row
    used[1] = key_at
    used[2] = value_at
    used[3] = header_at
    used[4] = name_at
    used[5] = content_at
    return OK


def load() -> None:
    """Load the compiled code for the arguments that Columns passes, before the first record arrives."""
    numbers, bits, longs = np.zeros(1, np.int32), np.zeros(1, np.uint8), np.zeros(COUNTS, np.int64)
    column, headers = (numbers, bits, bits), (numbers, bits, numbers, bits, numbers, bits, bits)
    for body in (np.zeros(0, np.uint8), np.frombuffer(b"", np.uint8)):  # received, decompressed: read-only
        walk(body, 0, 0, 0, 0, -1, 0, 0, 0, longs, longs, longs, column, column, headers)
