"""The directory of `headrace up`: the data of one cluster, used by one process at a time.

DIR/up.pid          the process that runs the cluster
DIR/coordinator/    the embedded coordinator's data, or DIR/zookeeper/1, 2, 3
DIR/jaas.conf       user and password for the coordinator or ZooKeeper, which nobody else can read
DIR/broker-1/ …     the brokers' data
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

from headrace.cli.support.process import CommandFailed
from headrace.coordination.credentials import FILE_NAME as CREDENTIALS

LARGEST_LOG_BYTES: Final = 64 * 1024 * 1024  # at a start; a larger log is renamed and replaces the last one
_RELEASE_TIMEOUT_S: Final = 5.0  # processes that were killed together with their parent may still be exiting
_BROKER: Final = re.compile(r"broker-(\d+)")


class DataDirectory:
    """Paths in DIR."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.coordinator = path / "coordinator"
        self.credentials = path / CREDENTIALS  # of the coordinator's or ZooKeeper's only user
        self.zookeeper = path / "zookeeper"
        self.logs = path / "logs"

    def broker(self, broker_id: int) -> Path:
        return self.path / f"broker-{broker_id}"

    def log(self, name: str) -> Path:
        """Return the log file of the process `name`, to which each start appends."""
        self.logs.mkdir(exist_ok=True)
        log = self.logs / f"{name}.log"
        if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
            log.replace(log.with_suffix(".log.1"))
        return log

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that have run here, by their directories."""
        names = (_BROKER.fullmatch(path.name) for path in self.path.iterdir() if path.is_dir())
        return sorted(int(match[1]) for match in names if match)

    @contextmanager
    def held(self) -> Iterator[int]:
        """Lock the directory while the block runs; yield a file descriptor that holds the lock in children.

        Raise CommandFailed if another process has it. After a kill -9 the directory is free once all children
        are gone.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            file = (self.path / "up.pid").open("a+")
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise CommandFailed(f"cannot write to {self.path}: {why}; choose another directory") from error
        with file:
            self._lock(file)
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
            yield file.fileno()

    def _lock(self, file: TextIO) -> None:
        """Lock the file twice: `lockf` locks it for this process alone, `flock` for its children as well."""
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise self._in_use(f"another `headrace up`, process {file.read().strip()}") from None
        deadline = time.monotonic() + _RELEASE_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._in_use("processes of an earlier `headrace up`") from None
                time.sleep(0.01)
            else:
                return

    def _in_use(self, by: str) -> CommandFailed:
        return CommandFailed(f"{self.path} is in use by {by}: stop it first, or choose another directory")
