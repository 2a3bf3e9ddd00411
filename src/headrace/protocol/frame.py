"""Frames: four bytes of size, then the message. A stream is split into frames without I/O.

A FrameBuffer is made for `asyncio.BufferedProtocol`: the transport writes into `get_buffer()`,
`received(n)` returns the frames that have become whole. A frame is a writable slice of the buffer
it was received in. It stays valid for as long as somebody holds it: a buffer is written to again
only where no frame has been cut out of it, or once nobody holds a frame of it any more.
"""

from mmap import mmap
from struct import Struct
from typing import Final

from headrace.protocol.buffer_pool import SMALLEST, BufferPool, is_held
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer

CHUNK_BYTES: Final = SMALLEST
"""The buffer of a busy connection; many small frames share one chunk."""

GROWTH: Final = 8
"""A frame larger than a chunk gets a buffer of at most this many times the bytes received of it."""

PROVEN_BYTES: Final = 4 * 1024 * 1024
"""Up to this size, a peer that has sent a frame of a size gets a buffer of that size at once."""

_SIZE: Final = Struct(">i")
_NOWHERE: Final = memoryview(b"")


class FrameBuffer:
    """Receives one connection's bytes and splits them into frames.

    A frame may have `max_frame_bytes`; a larger or negative size raises ProtocolError and ends the
    connection. Memory follows the bytes that arrive, not the size that a peer claims.
    """

    def __init__(self, max_frame_bytes: int, pool: BufferPool | None = None) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._pool = pool or BufferPool()
        self._proven = CHUNK_BYTES
        self._buffer: mmap | None = None
        self._retired: mmap | None = None  # the previous buffer: it is reused when its frames are released
        self._view = _NOWHERE
        self._start = 0  # of the incomplete frame
        self._end = 0  # of the received bytes

    @property
    def capacity(self) -> int:
        return len(self._view)

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """Return the free part of the buffer: never empty, and never part of a returned frame."""
        self.settle()
        needed = self._needed()
        if self._start + needed > len(self._view):
            pending = self._view[self._start : self._end]
            self._retire()
            self._buffer = self._pool.take(max(needed, CHUNK_BYTES))
            self._view = memoryview(self._buffer)
            self._view[: len(pending)] = pending
            self._end = len(pending)
        return self._view[self._end :]

    def received(self, count: int) -> list[memoryview]:
        """Account for `count` received bytes; return the frames that they complete, in order."""
        view, start = self._view, self._start
        self._end = end = self._end + count
        frames = []
        while end - start >= 4:
            stop = start + 4 + self._size_at(start)
            if stop > end:
                break
            frames.append(view[start + 4 : stop])
            start = stop
        self._start = start
        if start == len(view) or (start == end and len(view) > CHUNK_BYTES):
            self._retire()  # it is full, or too large for a connection that may now be idle
        if frames and len(frames[-1]) > self._proven:  # a frame larger than a chunk ends its buffer
            self._proven = min(len(frames[-1]), PROVEN_BYTES)
        return frames

    def _size_at(self, position: int) -> int:
        (size,) = _SIZE.unpack_from(self._view, position)
        if not 0 <= size <= self.max_frame_bytes:
            raise ProtocolError(f"a frame of {size} bytes exceeds the limit of {self.max_frame_bytes}")
        return int(size)

    def _needed(self) -> int:
        """Return the buffer size for the incomplete frame, from its start."""
        have = self._end - self._start
        if have < 4:
            return have + 4  # enough for the size field
        whole = 4 + self._size_at(self._start)
        full = self._end == len(self._view)
        return min(whole, max(have * GROWTH if full else 0, self._proven))

    def _retire(self) -> None:
        """Retire the buffer: its frames may still be in use."""
        self.settle()
        self._retired, self._buffer = self._buffer, None
        self._view, self._start, self._end = _NOWHERE, 0, 0

    def settle(self) -> None:
        """Return a buffer to the pool if none of its frames is in use.

        Event loops hold the buffer until they have told of what they read, so this comes to nothing before.
        """
        if self._retired is not None and not is_held(self._retired):
            self._pool.give(self._retired)
            self._retired = None

    def rest(self) -> None:
        """Release the memory of an idle connection, unless a frame has begun."""
        if self._start == self._end:
            self._retire()
        self.settle()

    def release(self) -> None:
        """Return all buffers of a closed connection to the pool."""
        self._retire()
        self.settle()
        self._retired = None


def encode_frame(header: bytes, body: list[Buffer]) -> list[Buffer]:
    """Return the buffers of one frame, to be sent in order; those of `body` are not copied."""
    size = len(header) + sum(map(len, body))
    return [_SIZE.pack(size) + header, *body]
