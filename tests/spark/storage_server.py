"""A server that keeps the state of pipelines, as a process with a log file: started, awaited, killed."""

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ports import free_port
from support.process import NotReady

START_TIMEOUT_S: Final = 120.0


class StorageServer(ABC):
    """A server on a free port of the loopback, with its data and its log in `root`."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._port = free_port()
        self._log = root / "server.log"
        self._process: subprocess.Popen[bytes]

    @abstractmethod
    def _command(self) -> Sequence[str | Path]:
        """Return the command that runs the server."""

    @abstractmethod
    def _write(self) -> None:
        """Write a file; raise an error if the server is not ready."""

    def _variables(self) -> Mapping[str, str] | None:
        """Return the environment of the process; None: this one's."""
        return None

    def __enter__(self) -> Self:
        command = self._command()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=self._root, env=self._variables(), stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self._wait()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                self._write()
            except Exception as error:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    log = self._log.read_text(errors="replace")
                    raise NotReady(f"the server does not answer: {error}\n{log[-2000:]}") from error
                time.sleep(0.2)
            else:
                return

    def _stop(self) -> None:
        self._process.kill()
        self._process.wait()
