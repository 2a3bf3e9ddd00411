"""Mutations of bytes, with the numbers and lengths that parsers get wrong."""

from collections.abc import Sequence
from random import Random
from struct import pack
from typing import Final

NUMBERS: Final = (-(2**31), -2, -1, 0, 1, 2, 3, 127, 128, 255, 256, 32767, 65535, 65536, 2**24, 2**31 - 1)
SIZES: Final = {1: ">b", 2: ">h", 4: ">i", 8: ">q"}
MAX_BYTES: Final = 4096


def mutate(data: bytes, corpus: Sequence[bytes], words: Sequence[bytes], random: Random) -> bytes:
    """Return `data` with a few changes."""
    changed = bytearray(data)
    for _ in range(1 << random.randrange(4)):
        _change(changed, corpus, words, random)
    return bytes(changed[:MAX_BYTES])


def _change(data: bytearray, corpus: Sequence[bytes], words: Sequence[bytes], random: Random) -> None:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((1, 2, 4, 8, 16, 64)))
    match random.randrange(8):
        case 0 if data:
            data[at % len(data)] ^= 1 << random.randrange(8)
        case 1 if data:
            data[at % len(data)] = random.randrange(256)
        case 2:
            size = random.choice(tuple(SIZES))
            number = random.choice(NUMBERS)
            bits = 8 * size
            wrapped = (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
            data[at : at + size] = pack(SIZES[size], wrapped)
        case 3:
            del data[at:end]
        case 4:
            data[at:at] = data[at:end] * random.choice((1, 1, 3, 20))
        case 5:
            other = random.choice(corpus)
            start = random.randrange(len(other) + 1)
            data[at:end] = other[start : start + random.randrange(64)]
        case 6 if words:
            data[at : random.choice((at, end))] = random.choice(words)
        case _:
            data[at:at] = random.randbytes(random.randrange(1, 5))
