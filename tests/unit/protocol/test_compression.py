import contextlib
import gzip
import random
import struct
import tracemalloc

import cramjam
import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from headrace.protocol.compression import Compression, compress, decompress
from headrace.protocol.errors import InvalidRecord

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
EVERY_CODEC = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)

NOISE = random.Random(7).randbytes(150_000)
TEXT = b"the same again and again, " * 8_000
SAMPLES = [b"", b"x", TEXT, NOISE, TEXT[:65_536], NOISE[:65_536], NOISE[:65_537], bytes(3_000_000)]
EVERY_SAMPLE = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{len(sample)}-{sample[:1]!r}")


@pytest.mark.parametrize("codec", Compression)
@EVERY_SAMPLE
def test_what_is_packed_unpacks_to_itself(codec: Compression, sample: bytes) -> None:
    assert bytes(decompress(codec, compress(codec, sample), max_bytes=len(sample))) == sample


@EVERY_CODEC
@given(data=st.binary(max_size=2000), repeat=st.integers(1, 20))
def test_any_bytes_come_back(codec: Compression, data: bytes, repeat: int) -> None:
    packed = memoryview(bytearray(compress(codec, memoryview(data * repeat))))

    assert bytes(decompress(codec, packed, max_bytes=10**6)) == data * repeat


@EVERY_SAMPLE
def test_other_libraries_read_what_we_write(sample: bytes) -> None:
    assert gzip.decompress(compress(Compression.GZIP, sample)) == sample
    assert lz4.frame.decompress(compress(Compression.LZ4, sample)) == sample
    unpacker = zstandard.ZstdDecompressor().decompressobj()
    assert unpacker.decompress(bytes(compress(Compression.ZSTD, sample))) == sample
    assert _read_xerial(bytes(compress(Compression.SNAPPY, sample))) == sample


@EVERY_SAMPLE
def test_we_read_what_other_libraries_write(sample: bytes) -> None:
    foreign = [
        (Compression.GZIP, gzip.compress(sample)),
        (Compression.LZ4, lz4.frame.compress(sample)),
        (Compression.LZ4, lz4.frame.compress(sample, block_linked=False, content_checksum=True)),
        (Compression.LZ4, lz4.frame.compress(sample, block_checksum=True, store_size=False)),
        (Compression.ZSTD, zstandard.compress(sample)),
        (Compression.ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(sample)),
        (Compression.ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress(sample)),
        (Compression.SNAPPY, snappy.compress(sample)),
    ]
    for codec, packed in foreign:
        assert bytes(decompress(codec, packed, max_bytes=len(sample))) == sample, codec


def test_lz4_blocks_do_not_depend_on_each_other() -> None:
    # Java's reader refuses dependent blocks, and any version but 01.
    frame = compress(Compression.LZ4, TEXT)
    info = lz4.frame.get_frame_info(bytes(frame))

    assert not info["block_linked"]
    assert not info["content_checksum"]
    assert frame[4] >> 6 == 1


def test_snappy_of_several_blocks_is_framed_as_snappy_java_does() -> None:
    packed = bytes(compress(Compression.SNAPPY, NOISE))

    assert packed.startswith(XERIAL)
    assert _read_xerial(packed) == NOISE


@pytest.mark.parametrize(
    "blocks",
    [
        b"\x00",  # half a length
        struct.pack(">i", -1),
        struct.pack(">i", 100) + b"too few",
        struct.pack(">i", 3) + b"\xff\xff\xff",
        struct.pack(">i", 0),
    ],
    ids=bytes.hex,
)
def test_broken_snappy_blocks_are_refused(blocks: bytes) -> None:
    with pytest.raises(InvalidRecord, match="snappy"):
        decompress(Compression.SNAPPY, XERIAL + blocks, max_bytes=1000)


@EVERY_CODEC
def test_data_cut_short_is_refused(codec: Compression) -> None:
    packed = compress(codec, TEXT[:500] + NOISE[:500])

    for end in range(len(packed)):
        if codec is Compression.SNAPPY and end in {0, *range(8, 17)}:
            continue  # nothing at all and no block at all unpack to nothing
        with pytest.raises(InvalidRecord):
            bytes(decompress(codec, packed[:end], max_bytes=10_000))


@EVERY_CODEC
def test_damaged_data_is_refused_or_read_and_nothing_else(codec: Compression) -> None:
    packed = compress(codec, TEXT[:300] + NOISE[:300])
    chance = random.Random(3)
    for place in range(len(packed)):
        for _ in range(8):
            damaged = bytearray(packed)
            damaged[place] = chance.randrange(256)
            damaged[chance.randrange(len(packed))] = chance.randrange(256)
            with contextlib.suppress(InvalidRecord):
                assert len(decompress(codec, damaged, max_bytes=5000)) <= 5000


@EVERY_CODEC
@given(data=st.binary(max_size=100))
def test_any_bytes_are_refused_or_read(codec: Compression, data: bytes) -> None:
    with contextlib.suppress(InvalidRecord):
        decompress(codec, data, max_bytes=1000)


@EVERY_CODEC
def test_a_byte_more_than_allowed_is_refused(codec: Compression) -> None:
    packed = compress(codec, TEXT)

    with pytest.raises(InvalidRecord, match=f"more than {len(TEXT) - 1} bytes"):
        decompress(codec, packed, max_bytes=len(TEXT) - 1)


def _bombs() -> list[tuple[Compression, bytes]]:
    zeros = bytes(64 * 1024 * 1024)
    lying_snappy = b"\xff\xff\xff\xff\x0f" + b"\x00" * 10  # claims four gigabytes
    lying_zstd = bytearray(zstandard.compress(b"x" * 1000))
    magic, descriptor = bytes(lying_zstd[:4]), 0b11100000  # content size in eight bytes, one segment
    claims_a_terabyte = magic + bytes([descriptor]) + struct.pack("<Q", 2**40) + bytes(lying_zstd[7:])
    return [
        (Compression.GZIP, gzip.compress(zeros)),
        (Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(zeros))),
        (Compression.SNAPPY, bytes(compress(Compression.SNAPPY, zeros))),
        (Compression.SNAPPY, lying_snappy),
        (Compression.SNAPPY, XERIAL + struct.pack(">i", len(lying_snappy)) + lying_snappy),
        (Compression.LZ4, lz4.frame.compress(zeros)),
        (Compression.LZ4, lz4.frame.compress(zeros, store_size=False)),
        (Compression.ZSTD, zstandard.compress(zeros)),
        (Compression.ZSTD, claims_a_terabyte),
    ]


@pytest.mark.parametrize(
    ("codec", "bomb"), _bombs(), ids=lambda value: f"{len(value)}" if isinstance(value, bytes) else value.name
)
def test_a_bomb_is_refused_without_the_memory_it_asks_for(codec: Compression, bomb: bytes) -> None:
    limit = 1024 * 1024
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRecord):
            decompress(codec, bomb, max_bytes=limit)
        assert tracemalloc.get_traced_memory()[1] < 4 * limit
    finally:
        tracemalloc.stop()


def _read_xerial(data: bytes) -> bytes:
    """Snappy-java's framing, read by the rules its source states."""
    assert data[:16] == XERIAL
    unpacked, position = b"", 16
    while position < len(data):
        (size,) = struct.unpack_from(">i", data, position)
        unpacked += bytes(snappy.uncompress(data[position + 4 : position + 4 + size]))
        position += 4 + size
    return unpacked
