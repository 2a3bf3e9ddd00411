"""One process, and within it one owner, per log directory."""

import fcntl
import os
from pathlib import Path

from headrace.storage.errors import ForeignDirectory

FILE_NAME = ".lock"
_held: set[Path] = set()  # a POSIX lock does not keep its own process out


class DirectoryLock:
    """Held from construction until `release`; the kernel lets go of it when the process dies."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory.resolve()
        if self._directory in _held:
            raise ForeignDirectory(f"{directory} is in use by this process already")
        descriptor = os.open(directory / FILE_NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind of lock Java takes
        except OSError:
            os.close(descriptor)
            raise ForeignDirectory(
                f"{directory} is in use by another process: stop it first, or choose another directory"
            ) from None
        self._descriptor: int | None = descriptor
        _held.add(self._directory)

    def release(self) -> None:
        """Let go; the file stays, as somebody may have it open already and be about to lock it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            _held.remove(self._directory)
