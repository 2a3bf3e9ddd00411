"""The directory of `headrace up`: one cluster's, one process's at a time, and whose brokers it has seen.

DIR/up.pid          the process that runs it
DIR/coordinator/    the embedded coordinator's, or DIR/zookeeper/1, 2, 3
DIR/broker-1/ …     the brokers'
DIR/logs/           a file for each process
"""

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from headrace.cli.process import Refused

LARGEST_LOG_BYTES: Final = 64 * 1024 * 1024  # at a start; a larger one is put aside, in place of the last
_PATIENCE_S: Final = (
    5.0  # for processes that were killed together with their parent, and are on their way out
)
_BROKER: Final = re.compile(r"broker-(\d+)")


class DataDirectory:
    """Paths in DIR."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def coordinator(self) -> Path:
        return self.path / "coordinator"

    @property
    def zookeeper(self) -> Path:
        return self.path / "zookeeper"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    def broker(self, broker_id: int) -> Path:
        return self.path / f"broker-{broker_id}"

    def log(self, name: str) -> Path:
        """Where the log of the process `name` goes, below what earlier ones have written."""
        self.logs.mkdir(exist_ok=True)
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def brokers(self) -> list[int]:
        """The brokers that have been run here, by their directories."""
        found = (_BROKER.fullmatch(each.name) for each in self.path.iterdir() if each.is_dir())
        return sorted(int(match[1]) for match in found if match)

    @contextmanager
    def held(self) -> Iterator[int]:
        """Be the only one to run what is in it; yields a file that its processes inherit, and hold it with.

        Refused if another does. After a kill -9 the directory is free once all those processes are gone.
        """
        with self._opened() as file:
            self._hold(file)
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield file.fileno()

    def _opened(self) -> TextIO:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return (self.path / "up.pid").open("a+")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise Refused(f"nothing can be kept in {self.path}: {why}; choose another directory") from error

    def _hold(self, file: TextIO) -> None:
        """Lock the file twice: one kind of lock is this process's own, the other its children's as well."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise self._in_use(f"another `headrace up`, process {file.read().strip()}") from None
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._in_use("processes of an earlier `headrace up`") from None
                time.sleep(0.01)
            else:
                return

    def _in_use(self, by: str) -> Refused:
        return Refused(f"{self.path} is in use by {by}: stop it first, or choose another directory")
