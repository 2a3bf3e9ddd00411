"""The compiled part of writing: rows of Arrow columns become records, and keys choose partitions."""

from typing import Final

import numpy as np

from headrace.spark.compiled import Bytes, Ints, compiled, copy

_SEED: Final = 0x9747B28C  # Kafka's
_M: Final = 0x5BD1E995
_LOW: Final = 0xFFFFFFFF

Column = tuple[Ints, Bytes, Bytes]
"""Where each row's bytes end, the bytes, and a byte per row: whether it is not null."""

Headers = tuple[Ints, Bytes, Column, Column]
"""Where each row's headers end, and whether it has any; their keys; their values."""


@compiled
def _murmur2(data: Bytes, at: int, size: int) -> int:
    """The hash by which Kafka's clients choose a key's partition."""
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
    """A partition for every row that has none (-1): by its key, or in turn, in runs, if it has no key."""
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
    """How many bytes a zig-zag varint takes."""
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
def encode(  # noqa: PLR0917  compiled code knows no keywords
    order: Ints,  # the rows of one partition
    first: int,  # where in it to begin
    last: int,  # and where to end at the latest
    keys: Column,
    values: Column,
    headers: Headers,
    out: Bytes,
    limit: int,  # for the size of all; a single record may be larger, if `out` has room
) -> tuple[int, int]:
    """Write records one after another, as many as fit: the place in `order` after the last, and their size.

    None at all if `out` has no room for the first one.
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
        out[at + 1] = 0  # all records of a batch are of one moment
        at = _put(delta, out, at + 2)
        at = _put_bytes(keys, row, out, at)
        at = _put_bytes(values, row, out, at)
        at = _put(header_count, out, at)
        for header in range(first_header, last_header):
            at = _put_bytes(header_keys, header, out, at)
            at = _put_bytes(header_values, header, out, at)
    return last, at
