"""Receive buffers used again: a fresh megabyte costs a millisecond of page faults, a used one nothing.

They are maps of memory, not bytearrays: what is let go goes back to the system at once. The C library keeps
small blocks between large ones that are free, and with them the memory of thousands of closed connections.
"""

from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

SMALLEST: Final = 64 * 1024
"""Buffers come in powers of two from this size on."""

POOL_BYTES: Final = 32 * 1024 * 1024
"""What a pool keeps at most, over all connections that share it."""


class BufferPool:
    """Spare buffers by size. For one thread; what it hands out is held by nobody else."""

    def __init__(self, max_bytes: int = POOL_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept = 0
        self._spares: dict[int, list[mmap]] = {}

    def take(self, size: int) -> mmap:
        """A buffer of at least `size` bytes, with anything in it."""
        rounded = max(SMALLEST, 1 << (size - 1).bit_length())
        spares = self._spares.get(rounded)
        if not spares:
            return mmap(-1, rounded, MAP_PRIVATE | MAP_ANONYMOUS)
        self._kept -= rounded
        return spares.pop()

    def give(self, buffer: mmap) -> None:
        """Take a buffer back, unless somebody still holds a view of it or there are enough."""
        if self._kept + len(buffer) > self._max_bytes or is_held(buffer):
            return
        self._kept += len(buffer)
        self._spares.setdefault(len(buffer), []).append(buffer)


def is_held(buffer: mmap) -> bool:
    """Whether there is a view of `buffer`: then, and only then, Python refuses to change its size."""
    try:
        buffer.resize(len(buffer))
    except BufferError:
        return True
    return False
