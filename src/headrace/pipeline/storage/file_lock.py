"""A lock in a local directory, which the operating system releases when its holder ends, however it ends."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from headrace.pipeline.errors import PipelineError

_LOCK_TIMEOUT_S: Final = 0.2


class FileLock:
    """The lock at `path`. `what` names the locked thing in messages."""

    is_lost = False

    def __init__(self, path: Path, what: str) -> None:
        self._path = path
        self._what = what

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock; PipelineError if another process holds it."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a+") as file:
            self._take(file)
            file.truncate(0)
            file.write(f"{os.getpid()} {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def _take(self, file: IO[str]) -> None:
        """Lock the file; a process that reads the `owner` holds the lock for a moment."""
        deadline = time.monotonic() + _LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if time.monotonic() > deadline:
                    owner = self.owner()
                    raise PipelineError(
                        f"{self._what} is running already, as process {owner[0] if owner else '?'}: "
                        "`headrace pipeline stop` ends it"
                    ) from None
                time.sleep(_LOCK_TIMEOUT_S / 10)
            else:
                return

    def owner(self) -> tuple[int, str] | None:
        """Return the process that holds the lock and its host, since machines may share the directory."""
        try:
            with self._path.open("r") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    pid, _, host = file.read().strip().partition(" ")
                    return (int(pid), host) if pid.isdecimal() else None
        except FileNotFoundError:
            return None
        return None
