"""Which partition of an internal topic holds a key: Kafka takes Java's hash of the string."""

import struct
from functools import lru_cache
from operator import mul

_CACHED_CHARS = 255
_MAX_CHARS = 2**15  # of a string in the protocol


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition that holds the group, transactional id or share group `key`."""
    return java_hash(key) % partition_count


def java_hash(text: str) -> int:
    """Return the absolute value of Java's String.hashCode, as Kafka's Utils.abs computes it."""
    return _cached_hash(text) if len(text) <= _CACHED_CHARS else _hash(text)


def _hash(text: str) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    # Without a loop in Python: a request may name many ids of 32 KB.
    value: int = sum(map(mul, reversed(units), _powers(max(len(units), _MAX_CHARS)))) & 0xFFFFFFFF
    if value == 0x80000000:  # the only int without an absolute value in Java
        return 0
    return value if value < 0x80000000 else 0x100000000 - value


_cached_hash = lru_cache(maxsize=16_384)(_hash)  # about as many keys as send a request within a few seconds


@lru_cache(maxsize=1)
def _powers(count: int) -> list[int]:
    """Return `count` powers of 31, from 31**0 on, modulo 2**32."""
    powers = [1]
    for _ in range(count - 1):
        powers.append(powers[-1] * 31 & 0xFFFFFFFF)
    return powers
