"""The open files of segments: a bounded cache of file descriptors.

A file is opened on its first use. It is closed when it was not used for a while, or when `limit` files are
open and another one is needed: then the least recently used goes first, found by second chance. A file with
unflushed bytes stays open: a write-back error of a closed file may be lost, because the kernel forgets it
together with the inode, and a later fsync would succeed. So there may be half as many files again until
`oldest_unflushed` are flushed in threads; only beyond that a file is flushed when another one is opened.

Files are opened, used and closed by the thread of their logs. Other threads use `sync` and `duplicate`.
"""

import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from headrace.storage import page_cache
from headrace.system.system_calls import sync_data

_EXAMINED: Final = 64  # files that are considered before one is flushed to be closed
_CLOSED_TOGETHER: Final = 1000  # which takes about a millisecond


class SegmentFile:
    """A segment's `.log` file, which is open or not. `has_unflushed` is set after each write."""

    __slots__ = ("_files", "has_unflushed", "opened", "path", "was_used")

    def __init__(self, path: Path, files: "OpenFiles") -> None:
        self.path = path
        self.has_unflushed = False
        self._files = files
        self.opened: int | None = None  # the descriptor
        self.was_used = False  # since it was last considered for closing

    @property
    def descriptor(self) -> int:
        """Return the file descriptor for a use at once: the next call may return another one."""
        self.was_used = True
        descriptor = self.opened
        return self._files.open(self) if descriptor is None else descriptor

    def create(self) -> None:
        """Create the file, which must not exist, and open it."""
        self._files.open(self, os.O_CREAT | os.O_EXCL)
        self.was_used = True

    def close(self) -> None:
        """Close the file if it is open, whether it has unflushed bytes or not."""
        self._files.close(self)

    def duplicate(self) -> int:
        """Return a descriptor of the caller's own, which stays valid when the file is closed or deleted."""
        with self._files.lock:
            if self.opened is not None:
                return os.dup(self.opened)
        return os.open(self.path, os.O_RDONLY)

    def sync(self) -> None:
        """Make everything written so far durable. May run in any thread."""
        descriptor = self.duplicate()
        self.has_unflushed = False  # a write from here on sets it again
        try:
            sync_data(descriptor)
        except OSError:
            self.has_unflushed = True
            raise
        finally:
            os.close(descriptor)


class OpenFiles:
    """At most `limit` open files. `flush` makes one durable, and returns whether it can be closed now."""

    def __init__(
        self, limit: int = sys.maxsize, *, flush: Callable[[SegmentFile], bool] = lambda _file: False
    ) -> None:
        self.limit = limit
        self._most = limit + limit // 2
        self.lock = threading.Lock()  # held to open, close or duplicate a descriptor, not to use it
        self.on_crowded: Callable[[], None] | None = None
        self._flush = flush
        self._open: OrderedDict[SegmentFile, None] = OrderedDict()  # first: the next one to be closed

    def __len__(self) -> int:
        return len(self._open)

    @property
    def is_crowded(self) -> bool:
        """Whether files should be flushed now, so that they can be closed later without a wait."""
        return len(self._open) > self.limit - self.limit // 4

    def open(self, file: SegmentFile, flags: int = 0) -> int:
        """Open `file`, and return its descriptor; close another file if too many are open."""
        while len(self._open) >= self.limit and self._close_one():
            pass
        with self.lock:
            descriptor = os.open(file.path, os.O_RDWR | flags, 0o644)
            page_cache.disable_readahead(descriptor)
            file.opened = descriptor
            self._open[file] = None
        if self.on_crowded is not None and self.is_crowded:
            self.on_crowded()
        return descriptor

    def close(self, file: SegmentFile) -> None:
        with self.lock:
            if file.opened is not None:
                del self._open[file]
                descriptor, file.opened = file.opened, None
                os.close(descriptor)

    def _close_one(self) -> bool:
        """Close a flushed file that was not used recently; if far too many are open, flush one for that."""
        unflushed = None
        for file in self._considered():
            if not file.has_unflushed:
                self.close(file)
                return True
            unflushed = unflushed or file
        if unflushed is None or len(self._open) < self._most or not self._flush(unflushed):
            return False
        self.close(unflushed)
        return True

    def _considered(self) -> Iterator[SegmentFile]:
        """Yield files that were not used since they were last considered, and put all to the end."""
        for _ in range(min(_EXAMINED, 2 * len(self._open))):
            with self.lock:
                file = next(iter(self._open))
                self._open.move_to_end(file)
            was_used, file.was_used = file.was_used, False
            if not was_used:
                yield file

    def oldest_unflushed(self, count: int) -> list[SegmentFile]:
        """Return files that are to be flushed, those first that are considered first for closing."""
        with self.lock:
            return list(islice((file for file in self._open if file.has_unflushed), count))

    def close_excess(self) -> None:
        """Close files until no more than `limit` are open, as far as they are flushed."""
        while len(self._open) > self.limit and self._close_one():
            pass

    def close_idle(self) -> None:
        """Close flushed files that were not used since the last call."""
        with self.lock:
            files = list(self._open)
        idle = [file for file in files if not file.was_used and not file.has_unflushed]
        for file in files:
            file.was_used = False
        for file in idle[:_CLOSED_TOGETHER]:
            self.close(file)

    def keep_open(self) -> None:
        """Close no file any more unless its log does: from now on several threads use them."""
        self.limit = self._most = sys.maxsize
