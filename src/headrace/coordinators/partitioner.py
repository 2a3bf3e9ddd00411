"""Which partition of an internal topic holds a key: Kafka takes Java's hash of the string."""

import struct
from functools import lru_cache, reduce

_CACHED_CHARS = 255


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition that holds the group, transactional id or share group `key`."""
    return java_hash(key) % partition_count


def java_hash(text: str) -> int:
    """Return the absolute value of Java's String.hashCode, as Kafka's Utils.abs computes it."""
    return _cached_hash(text) if len(text) <= _CACHED_CHARS else _hash(text)


def _hash(text: str) -> int:
    data = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(data) // 2}H", data)
    value = reduce(lambda total, unit: (31 * total + unit) & 0xFFFFFFFF, units, 0)
    if value == 0x80000000:  # the only int without an absolute value in Java
        return 0
    return value if value < 0x80000000 else 0x100000000 - value


_cached_hash = lru_cache(maxsize=16_384)(_hash)  # about as many keys as send a request within a few seconds
