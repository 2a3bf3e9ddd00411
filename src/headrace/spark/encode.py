"""The compiled part of the sink: it encodes rows of Arrow columns as records, and hashes keys."""

from typing import Final

import numpy as np

from headrace.tables.reader.compiled import Bytes, Ints, compiled, copy

_SEED: Final = 0x9747B28C  # Kafka's
_M: Final = 0x5BD1E995
_LOW: Final = 0xFFFFFFFF

Column = tuple[Ints, Bytes, Bytes]
"""The end of each row's bytes, the bytes, and for each row 0 if it is null, else 1."""

Headers = tuple[Ints, Bytes, Column, Column]
"""The end of each row's headers, 0 for rows without headers, the keys, the values."""


@compiled
def _murmur2(data: Bytes, at: int, size: int) -> int:
    """Return the hash by which Kafka's clients choose the partition of a key."""
    hashed = np.int64((_SEED ^ size) & _LOW)
    end = at + (size & ~3)
    for i in range(at, end, 4):
        word = (
            np.int64(data[i])
            | np.int64(data[i + 1]) << 8
            | np.int64(data[i + 2]) << 16
            | np.int64(data[i + 3]) << 24
        )
        word = (word * _M) & _LOW
        word ^= word >> 24
        word = (word * _M) & _LOW
        hashed = ((hashed * _M) & _LOW) ^ word
    left = size & 3
    if left == 3:
        hashed ^= np.int64(data[end + 2]) << 16
    if left >= 2:
        hashed ^= np.int64(data[end + 1]) << 8
    if left >= 1:
        hashed ^= np.int64(data[end])
        hashed = (hashed * _M) & _LOW
    hashed ^= hashed >> 13
    hashed = (hashed * _M) & _LOW
    return hashed ^ (hashed >> 15)


@compiled
def choose_partitions(keys: Column, rows: int, count: int, turn: int, chosen: Ints) -> None:
    """Choose the partition of rows without one (-1): by the key, or without a key in turn, in runs."""
    ends, data, present = keys
    for row in range(rows):
        if chosen[row] >= 0:
            continue
        if present[row]:
            start = ends[row]
            chosen[row] = (_murmur2(data, start, ends[row + 1] - start) & 0x7FFFFFFF) % count
        else:
            chosen[row] = (turn + row * count // rows) % count


@compiled
def _size(number: int) -> int:
    """Return the size of a zig-zag varint."""
    left = np.uint64((number << 1) ^ (number >> 63))
    size = 1
    while left >= np.uint64(128):
        left >>= np.uint64(7)
        size += 1
    return size


@compiled
def _put(number: int, out: Bytes, at: int) -> int:
    left = np.uint64((number << 1) ^ (number >> 63))
    while left >= np.uint64(128):
        out[at] = np.uint8(left & np.uint64(127)) | np.uint8(128)
        left >>= np.uint64(7)
        at += 1
    out[at] = np.uint8(left)
    return at + 1


@compiled
def _size_of_bytes(column: Column, row: int) -> int:
    ends, _, present = column
    if not present[row]:
        return 1
    size = np.int64(ends[row + 1] - ends[row])
    return _size(size) + size


@compiled
def _put_bytes(column: Column, row: int, out: Bytes, at: int) -> int:
    ends, data, present = column
    if not present[row]:
        return _put(-1, out, at)
    start = ends[row]
    size = np.int64(ends[row + 1] - start)
    at = _put(size, out, at)
    copy(data, start, size, out, at)
    return at + size


@compiled
def encode(  # noqa: PLR0917  compiled code has no keyword arguments
    order: Ints,  # the rows of one partition
    first: int,  # the first index in `order`
    last: int,  # the index after the last one
    keys: Column,
    values: Column,
    headers: Headers,
    out: Bytes,
    limit: int,  # for the size of all records; a single one may be larger, if `out` has room
) -> tuple[int, int]:
    """Encode as many records as fit; return the index in `order` after the last one, and their size.

    The index is `first` if `out` has no room for the first record.
    """
    header_ends, has_headers, header_keys, header_values = headers
    at = np.int64(0)
    for place in range(first, last):
        row = order[place]
        delta = place - first
        first_header = header_ends[row]
        last_header = header_ends[row + 1] if has_headers[row] else first_header
        header_count = last_header - first_header
        size = (
            2 + _size(delta) + _size_of_bytes(keys, row) + _size_of_bytes(values, row) + _size(header_count)
        )
        for header in range(first_header, last_header):
            size += _size_of_bytes(header_keys, header) + _size_of_bytes(header_values, header)
        whole = _size(size) + size
        if (at + whole > limit and delta > 0) or at + whole > len(out):
            return place, at
        at = _put(size, out, at)
        out[at] = 0  # attributes
        out[at + 1] = 0  # timestamp delta: all records of a batch have one timestamp
        at = _put(delta, out, at + 2)
        at = _put_bytes(keys, row, out, at)
        at = _put_bytes(values, row, out, at)
        at = _put(header_count, out, at)
        for header in range(first_header, last_header):
            at = _put_bytes(header_keys, header, out, at)
            at = _put_bytes(header_values, header, out, at)
    return last, at


def load() -> None:
    """Load the compiled code for the arguments that RowEncoder passes, before the first row arrives."""
    ends, data = np.frombuffer(bytes(4), np.int32), np.frombuffer(b"", np.uint8)  # read-only, as Arrow's are
    present, chosen = np.zeros(0, np.uint8), np.zeros(0, np.int32)
    column = (ends, data, present)
    choose_partitions(column, 0, 1, 0, chosen)
    encode(chosen, 0, 0, column, column, (ends, present, column, column), present, 0)
