"""Frames: four bytes of size and as many bytes of message, cut out of a stream without I/O.

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
"""What a connection costs while it is busy; many small frames share one chunk."""

GROWTH: Final = 8
"""A frame larger than a chunk gets at most this many times the bytes that have arrived of it."""

PROVEN_BYTES: Final = 4 * 1024 * 1024
"""Up to this size, a peer that has sent a frame as large is believed at once when it claims another."""

_SIZE: Final = Struct(">i")
_NOWHERE: Final = memoryview(b"")


class FrameBuffer:
    """Receives one connection's bytes and cuts them into frames.

    A frame may have `max_frame_bytes`; a larger or negative size raises ProtocolError and ends the
    connection. Memory follows the bytes that arrive, not the size that a peer claims.
    """

    def __init__(self, max_frame_bytes: int, pool: BufferPool | None = None) -> None:
        self._max_frame_bytes = max_frame_bytes
        self._pool = pool or BufferPool()
        self._proven = CHUNK_BYTES
        self._buffer: mmap | None = None
        self._retired: mmap | None = None  # the one before: it goes back once its frames have been let go
        self._view = _NOWHERE
        self._start = 0  # of the frame that is not whole yet
        self._end = 0  # of what has been received

    @property
    def capacity(self) -> int:
        """The memory that the buffer takes now."""
        return len(self._view)

    def get_buffer(self, _sizehint: int = -1) -> memoryview:
        """Where the next bytes go: never empty, and never part of a frame that was handed out."""
        self.settle()
        needed = self._needed()
        if self._start + needed > len(self._view):
            self._move(needed)
        return self._view[self._end :]

    def received(self, count: int) -> list[memoryview]:
        """Take note of `count` new bytes in the buffer; return the frames they complete, in order."""
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
            self._retire()  # it is full, or too large to be kept by a connection that may now be quiet
        if frames and len(frames[-1]) > self._proven:  # a frame larger than a chunk ends its buffer
            self._proven = min(len(frames[-1]), PROVEN_BYTES)
        return frames

    def _size_at(self, position: int) -> int:
        (size,) = _SIZE.unpack_from(self._view, position)
        if not 0 <= size <= self._max_frame_bytes:
            raise ProtocolError(f"a frame of {size} bytes; the limit is {self._max_frame_bytes}")
        return int(size)

    def _needed(self) -> int:
        """How much room the frame that is not whole yet should have from its start."""
        have = self._end - self._start
        if have < 4:
            return have + 4  # enough to learn the size; more room is welcome, not necessary
        whole = 4 + self._size_at(self._start)
        full = self._end == len(self._view)
        return min(whole, max(have * GROWTH if full else 0, self._proven))

    def _move(self, needed: int) -> None:
        """Go on in a fresh buffer: frames may live in the old one."""
        pending = self._view[self._start : self._end]
        self._retire()
        self._buffer = self._pool.take(max(needed, CHUNK_BYTES))
        self._view = memoryview(self._buffer)
        self._view[: len(pending)] = pending
        self._end = len(pending)

    def _retire(self) -> None:
        """Be done with the buffer: its frames may still be held."""
        self.settle()
        self._retired, self._buffer = self._buffer, None
        self._view, self._start, self._end = _NOWHERE, 0, 0

    def settle(self) -> None:
        """Let a buffer serve again that none of its frames is held of.

        Event loops hold the buffer until they have told of what they read, so this comes to nothing before.
        """
        if self._retired is not None and not is_held(self._retired):
            self._pool.give(self._retired)
            self._retired = None

    def rest(self) -> None:
        """Keep no memory while nothing comes, unless a frame has begun."""
        if self._start == self._end:
            self._retire()
        self.settle()

    def release(self) -> None:
        """The connection is gone: let all of its buffers serve again."""
        self._retire()
        self.settle()
        self._retired = None


def encode_frame(header: bytes, body: list[Buffer]) -> list[Buffer]:
    """The buffers of one frame, to be sent one after the other; those of `body` are not copied."""
    size = len(header) + sum(map(len, body))
    return [_SIZE.pack(size) + header, *body]
