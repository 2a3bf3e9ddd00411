"""Reads that do not wait for the disk: the event loop reads only what is in the page cache.

    data = log.read(offset, max_bytes, cached_only=True)    # raises NotCached instead of waiting

`NotCached.load` reads what was missing, in another thread, and then the read is repeated.
"""

import errno
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from headrace.protocol.buffer_pool import BufferPool, SharedBuffers
from headrace.protocol.fields import Buffer

LOADED_BYTES: Final = 1024 * 1024  # that `load` reads at least
AHEAD_BYTES: Final = 2 * 1024 * 1024  # that the disk reads next, while the loaded bytes are used
_PIECE_BYTES: Final = 128 * 1024
_LARGE_BYTES: Final = 64 * 1024  # from which a read uses memory that was used before
_NOWAIT: Final = getattr(os, "RWF_NOWAIT", 0)  # Linux; elsewhere reads wait, and NotCached is never raised
_UNSUPPORTED: Final = {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL}


class _ThreadBuffers(threading.local):
    def __init__(self) -> None:
        self.shared = SharedBuffers(BufferPool())


_buffers = _ThreadBuffers()


class NotCached(Exception):
    """A read would have to wait for the disk. Nothing has changed."""

    def __init__(self, path: Path, position: int, size: int) -> None:
        super().__init__(f"{size} bytes at {position} of {path} are not in the page cache")
        self._path, self._position, self._size = path, position, size

    def load(self) -> None:
        """Read what was missing into the page cache. A file that was deleted meanwhile is ignored."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY)
        except FileNotFoundError:
            return
        try:
            _read_into_cache(descriptor, self._position, max(self._size, LOADED_BYTES))
        finally:
            os.close(descriptor)


class SeveralNotCached(NotCached):
    """Reads of several logs would have to wait for the disk."""

    def __init__(self, missing: Sequence[NotCached]) -> None:
        Exception.__init__(self, "; ".join(map(str, missing)))
        self._missing = missing

    def load(self) -> None:
        for part in self._missing:
            part.load()


def _read_into_cache(descriptor: int, position: int, size: int) -> None:
    """Read a part of a file, a piece at a time into the same memory; have the disk continue after it."""
    disable_readahead(descriptor)
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, position, size + AHEAD_BYTES, os.POSIX_FADV_WILLNEED)
    piece, end = bytearray(_PIECE_BYTES), position + size
    while position < end and (count := os.preadv(descriptor, [piece], position)):
        position += count


def disable_readahead(descriptor: int) -> None:
    """Have the kernel read only what is asked for, from the first read of an open file on.

    Linux also reads ahead for a read that must not wait, which takes the event loop milliseconds to submit.
    It marks pages that it has read ahead: whoever reads one of them submits the next ones.
    """
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)


def pread(path: Path, descriptor: int, size: int, position: int, *, cached_only: bool = False) -> Buffer:
    """Return up to `size` bytes of an open file; with `cached_only`, raise NotCached if they are on disk."""
    if not cached_only or not _NOWAIT or not size:
        return os.pread(descriptor, size, position)
    data = bytearray(size) if size < _LARGE_BYTES else _buffers.shared.take(size)
    try:
        count = os.preadv(descriptor, [data], position, _NOWAIT)
    except BlockingIOError:
        raise NotCached(path, position, size) from None
    except OSError as error:
        if error.errno in _UNSUPPORTED:  # such as a file system in memory
            return os.pread(descriptor, size, position)
        raise
    if count == size:
        return data
    if position + count < os.fstat(descriptor).st_size:
        raise NotCached(path, position, size)
    return data[:count]
