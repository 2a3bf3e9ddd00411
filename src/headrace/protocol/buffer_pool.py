"""Pools of large buffers: a new megabyte costs a millisecond of page faults, a reused one nothing.

The buffers are memory maps, not bytearrays: a freed map is returned to the system at once. The C library
would keep freed blocks for fragmentation, and with them the memory of thousands of closed connections.
"""

from collections import deque
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from typing import Final

SMALLEST: Final = 64 * 1024
"""The smallest buffer; sizes are powers of two."""

POOL_BYTES: Final = 32 * 1024 * 1024
"""The most that a pool keeps, for all connections that share it."""


MAX_SHARED: Final = 64
_CONSIDERED: Final = 4


class BufferPool:
    """Free buffers by size. Not thread-safe; a buffer has one user at a time."""

    def __init__(self, max_bytes: int = POOL_BYTES) -> None:
        self._max_bytes = max_bytes
        self._kept = 0
        self._spares: dict[int, list[mmap]] = {}

    def take(self, size: int) -> mmap:
        """Return a buffer of at least `size` bytes, with arbitrary content."""
        rounded = max(SMALLEST, 1 << (size - 1).bit_length())
        spares = self._spares.get(rounded)
        if not spares:
            return mmap(-1, rounded, MAP_PRIVATE | MAP_ANONYMOUS)
        self._kept -= rounded
        return spares.pop()

    def give(self, buffer: mmap) -> None:
        """Return a buffer to the pool, unless a view of it exists or the pool is full."""
        if self._kept + len(buffer) > self._max_bytes or is_held(buffer):
            return
        self._kept += len(buffer)
        self._spares.setdefault(len(buffer), []).append(buffer)


class SharedBuffers:
    """Buffers that many may hold views of; one is used again when nobody holds a view. Not thread-safe."""

    def __init__(self, pool: BufferPool) -> None:
        self._pool = pool
        self._shared: deque[mmap] = deque()  # at most MAX_SHARED; others are freed with their last view

    def take(self, size: int) -> memoryview:
        """Return a buffer of `size` bytes, with arbitrary content."""
        for _ in range(min(len(self._shared), _CONSIDERED)):
            former = self._shared.popleft()
            if is_held(former):
                self._shared.append(former)
            else:
                self._pool.give(former)
        buffer = self._pool.take(size)
        if len(self._shared) < MAX_SHARED:
            self._shared.append(buffer)
        return memoryview(buffer)[:size]


def is_held(buffer: mmap) -> bool:
    """Return whether there is a view of `buffer`: only then Python refuses to resize it."""
    try:
        buffer.resize(len(buffer))
    except BufferError:
        return True
    return False
