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
        self._path = directory / FILE_NAME
        if self._directory in _held:
            raise ForeignDirectory(f"{directory} is in use by this process already")
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the kind of lock Java takes
        except OSError:
            os.close(self._descriptor)
            raise ForeignDirectory(
                f"{directory} is in use by another process: stop it first, or choose another directory"
            ) from None
        _held.add(self._directory)

    def release(self) -> None:
        if self._directory in _held:
            _held.remove(self._directory)
            self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
