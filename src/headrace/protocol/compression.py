"""The five compression types of a record batch, in the framings of Kafka's clients.

A broker compresses and decompresses only to compact a log, to read the records of batches for topics that
require it (compacted topics, topics with a `compression.type`), and for its own internal topics.
The data comes from clients, so `decompress` never allocates more than the caller allows.
Every codec releases the GIL while it works, so that a thread can compress beside the event loop.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final, TypeAlias

import cramjam

from headrace.protocol.errors import InvalidRecord, UnsupportedCompressionType

GZIP_LEVEL: Final = 6  # Kafka's default for compression.gzip.level; level 9 can take thirty times as long
_CHUNK_BYTES: Final = 256 * 1024  # of gzip input and output handled between two calls of `progress`

Buffer: TypeAlias = bytes | bytearray | memoryview


class Compression(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_BY_NUMBER = tuple(Compression)  # ten times faster than calling the enum, for every append

# The largest ratio of each codec: deflate copies 258 bytes in 2 bits, snappy 64 in 3
# bytes, an LZ4 match grows by 255 with each byte, and 4 bytes make a zstd block of 128 KiB.
_MAX_RATIO: Final = (1, 1032, 22, 256, 32 * 1024)


class UnpackedTooLarge(InvalidRecord):
    """The decompressed size exceeds the caller's limit."""


def max_unpacked_bytes(compression: Compression, size: int) -> int:
    """Return the largest possible decompressed size of `size` bytes."""
    return size * _MAX_RATIO[compression]


def compression_bits(attributes: int) -> int:
    """Return the compression type in a batch's attributes, which may be unknown."""
    return attributes & 0b111


def compression_of(attributes: int) -> Compression:
    """Return the compression in a batch's attributes; raise UnsupportedCompressionType if it is unknown."""
    number = compression_bits(attributes)
    if number >= len(_BY_NUMBER):
        raise UnsupportedCompressionType(number)
    return _BY_NUMBER[number]


def compress(
    compression: Compression, data: Buffer, *, progress: Callable[[int], None] | None = None
) -> Buffer:
    """Compress `data` in the framing of Kafka's Java client, which is the strictest reader.

    `progress` is called after every block of `data` with the size of the result so far; it may raise to stop.
    """
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _gzip(data, progress or _go_on)
        case Compression.SNAPPY:
            return _snappy_compress(data, progress or _go_on)
        case Compression.LZ4:
            return _lz4_compress(data, progress or _go_on)
        case Compression.ZSTD:
            return bytes(cramjam.zstd.compress(data))


def _go_on(_size: int) -> None:
    return


def decompress(compression: Compression, data: Buffer, *, max_bytes: int) -> Buffer:
    """Decompress `data`; raise InvalidRecord if it is broken, UnpackedTooLarge beyond `max_bytes`."""
    match compression:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            return _gunzip(data, max_bytes)
        case Compression.SNAPPY:
            return _snappy_decompress(data, max_bytes)
        case Compression.LZ4 | Compression.ZSTD:
            return _decompress_growing(compression, data, max_bytes)


def _too_large(compression: Compression, max_bytes: int) -> UnpackedTooLarge:
    return UnpackedTooLarge(f"{compression.name.lower()} data unpacks to more than {max_bytes} bytes")


def _broken(compression: Compression, why: object) -> InvalidRecord:
    return InvalidRecord(f"{compression.name.lower()} data is broken: {why}")


def _gzip(data: Buffer, progress: Callable[[int], None]) -> bytearray:
    deflater = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, wbits=31)
    packed = bytearray()
    for chunk in _blocks(data, _CHUNK_BYTES):
        packed += deflater.compress(chunk)
        progress(len(packed))
    packed += deflater.flush()
    return packed


def _gunzip(data: Buffer, max_bytes: int) -> bytearray:
    """Decompress chunk by chunk: joining many megabytes at the end would hold the GIL for long."""
    inflater = zlib.decompressobj(wbits=31)
    unpacked = bytearray()
    try:
        for block in _blocks(data, _CHUNK_BYTES):
            for chunk in _inflated(inflater, block):
                unpacked += chunk
                if len(unpacked) > max_bytes:
                    raise _too_large(Compression.GZIP, max_bytes)
            if inflater.eof:
                return unpacked
    except zlib.error as error:
        raise _broken(Compression.GZIP, error) from error
    raise _broken(Compression.GZIP, "the stream ends early")


def _inflated(inflater: "zlib._Decompress", block: Buffer) -> Iterator[bytes]:
    while not inflater.eof:
        chunk = inflater.decompress(block, _CHUNK_BYTES)
        yield chunk
        block = inflater.unconsumed_tail
        if not block and len(chunk) < _CHUNK_BYTES:
            return


def _decompress_growing(compression: Compression, data: Buffer, max_bytes: int) -> bytearray:
    """Decompress into a buffer of fixed size, and into larger ones while it is too small.

    Neither framing has to contain the decompressed size, and the size may be wrong: only a fixed
    buffer bounds the memory. Real data fits the first or second guess.
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
            del unpacked[size:]
            return unpacked


# snappy-java's framing: this header, then blocks, each preceded by its length in four bytes.
_XERIAL_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024


def _snappy_compress(data: Buffer, progress: Callable[[int], None]) -> bytearray:
    framed = bytearray(_XERIAL_HEADER)
    for block in _blocks(data, _SNAPPY_BLOCK):
        packed = cramjam.snappy.compress_raw(block)
        framed += struct.pack(">i", len(packed))
        framed += memoryview(packed)
        progress(len(framed))
    return framed


def _snappy_decompress(data: Buffer, max_bytes: int) -> bytearray:
    """Decompress blocks of the Java framing, or one bare block as written by librdkafka and others."""
    blocks = _xerial_blocks(data) if bytes(data[:8]) == _XERIAL_HEADER[:8] else iter([data])
    unpacked = bytearray()
    for block in blocks:
        try:
            if len(unpacked) + cramjam.snappy.decompress_raw_len(block) > max_bytes:
                raise _too_large(Compression.SNAPPY, max_bytes)
            unpacked += memoryview(cramjam.snappy.decompress_raw(block))
        except cramjam.DecompressionError as error:
            raise _broken(Compression.SNAPPY, error) from error
    return unpacked


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


# An LZ4 frame with independent blocks of up to 64 KiB and no checksums. Java's reader refuses frames with
# dependent blocks, which the codec library's own frame writer makes.
_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 0x80000000


def _lz4_compress(data: Buffer, progress: Callable[[int], None]) -> bytearray:
    framed = bytearray(_LZ4_HEADER)
    for block in _blocks(data, _LZ4_BLOCK):
        packed = cramjam.lz4.compress_block(block, store_size=False)
        if len(packed) < len(block):
            framed += struct.pack("<I", len(packed))
            framed += memoryview(packed)
        else:
            framed += struct.pack("<I", len(block) | _LZ4_STORED)
            framed += block
        progress(len(framed))
    framed += bytes(4)
    return framed


def _blocks(data: Buffer, size: int) -> Iterator[memoryview]:
    view = memoryview(data)
    return (view[start : start + size] for start in range(0, len(view), size))
