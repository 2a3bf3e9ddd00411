"""The five compression types of a record batch, in the framings Kafka's clients write and read.

A broker compresses and decompresses only to compact a log, to look into batches for a compacted
topic, for topics with a `compression.type` of their own, and for the records of its own internal topics.
What it decompresses is a client's bytes, so `decompress` never allocates more than the caller allows.
"""

import gzip
import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from typing import TypeAlias

import cramjam

from headrace.protocol.errors import InvalidRecord, UnsupportedCompressionType

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_BY_NUMBER = tuple(Compression)  # calling an enum takes ten times as long, and every append asks


def compression_of(attributes: int) -> Compression:
    """The compression named by a batch's attributes; UnsupportedCompressionType if there is no such one."""
    number = attributes & 0b111
    if number >= len(_BY_NUMBER):
        raise UnsupportedCompressionType(number)
    return _BY_NUMBER[number]


def compress(compression: Compression, data: Buffer) -> Buffer:
    """`data` in the framing that Kafka's Java client, the strictest of the readers, accepts."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return gzip.compress(data, mtime=0)
        case Compression.SNAPPY:
            return _snappy_compress(data)
        case Compression.LZ4:
            return _lz4_compress(data)
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def decompress(compression: Compression, data: Buffer, *, max_bytes: int) -> Buffer:
    """What `data` unpacks to; InvalidRecord if it is broken or unpacks to more than `max_bytes`."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _gunzip(data, max_bytes)
        case Compression.SNAPPY:
            return _snappy_decompress(data, max_bytes)
        case Compression.LZ4 | Compression.ZSTD:
            return _decompress_growing(compression, data, max_bytes)


def _too_large(compression: Compression, max_bytes: int) -> InvalidRecord:
    return InvalidRecord(f"{compression.name.lower()} data unpacks to more than {max_bytes} bytes")


def _broken(compression: Compression, why: object) -> InvalidRecord:
    return InvalidRecord(f"{compression.name.lower()} data is broken: {why}")


def _gunzip(data: Buffer, max_bytes: int) -> bytes:
    inflater = zlib.decompressobj(wbits=31)
    try:
        unpacked = inflater.decompress(data, max_bytes + 1)
    except zlib.error as error:
        raise _broken(Compression.GZIP, error) from error
    if len(unpacked) > max_bytes:
        raise _too_large(Compression.GZIP, max_bytes)
    if not inflater.eof:
        raise _broken(Compression.GZIP, "the stream ends early")
    return unpacked


def _decompress_growing(compression: Compression, data: Buffer, max_bytes: int) -> memoryview:
    """Unpack into a buffer of fixed size, and into larger ones while it is too small.

    Neither framing has to say how large its content is, and one that says so may lie: a fixed
    buffer is the only bound that holds. Real data fits the first or second guess.
    """
    codec = cramjam.zstd if compression is Compression.ZSTD else cramjam.lz4
    room = min(max_bytes, max(4096, 8 * len(data)))
    while True:
        unpacked = bytearray(room)
        try:
            size = codec.decompress_into(data, unpacked)
        except cramjam.DecompressionError as error:
            if "failed to write whole buffer" not in str(error):
                raise _broken(compression, error) from error
            if room == max_bytes:
                raise _too_large(compression, max_bytes) from error
            room = min(max_bytes, 8 * room)
        else:
            return memoryview(unpacked)[:size]


# Snappy as snappy-java frames it: this header, then blocks, each behind its length in four bytes.
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024


def _snappy_compress(data: Buffer) -> bytes:
    framed = bytearray(_XERIAL_HEADER)
    for block in _blocks(data, _SNAPPY_BLOCK):
        packed = cramjam.snappy.compress_raw(block)
        framed += struct.pack(">i", len(packed))
        framed += memoryview(packed)
    return bytes(framed)


def _snappy_decompress(data: Buffer, max_bytes: int) -> bytes:
    """Blocks of the Java framing, or one bare block as librdkafka and others write it."""
    blocks = _xerial_blocks(data) if bytes(data[:8]) == _XERIAL_HEADER[:8] else iter([data])
    unpacked = bytearray()
    for block in blocks:
        try:
            if len(unpacked) + cramjam.snappy.decompress_raw_len(block) > max_bytes:
                raise _too_large(Compression.SNAPPY, max_bytes)
            unpacked += memoryview(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise _broken(Compression.SNAPPY, error) from error
    return bytes(unpacked)


def _xerial_blocks(data: Buffer) -> Iterator[Buffer]:
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if position + 4 > len(data):
            raise _broken(Compression.SNAPPY, f"half a block length at byte {position}")
        (size,) = struct.unpack_from(">i", data, position)
        position += 4
        if not 0 <= size <= len(data) - position:
            raise _broken(Compression.SNAPPY, f"a block of {size} bytes with {len(data) - position} left")
        yield data[position : position + size]
        position += size


# An LZ4 frame with independent blocks of up to 64 KiB and no checksums. Java's reader refuses frames
# whose blocks depend on each other, which is what the codec library's own frame writer makes.
_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000


def _lz4_compress(data: Buffer) -> bytes:
    framed = bytearray(_LZ4_HEADER)
    for block in _blocks(data, _LZ4_BLOCK):
        packed = cramjam.lz4.compress_block(block, store_size=False)
        if len(packed) < len(block):
            framed += struct.pack("<I", len(packed))
            framed += memoryview(packed)
        else:
            framed += struct.pack("<I", len(block) | _LZ4_STORED)
            framed += block
    return bytes(framed + bytes(4))


def _blocks(data: Buffer, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(view), size))
