"""One process of a cluster: started, killed, started again."""

import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from compare import process

STOP_TIMEOUT_S: Final = 30
READY_TIMEOUT_S: Final = 60


class Node:
    """A broker, or what brokers need; `log` takes all that it writes."""

    def __init__(self, command: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._spent = 0.0  # CPU seconds of its earlier lives
        self.log: Final = log

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env=self._environment,
            )

    def stop(self) -> None:
        """Ask it to end, and make it end if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> None:
        """End it as a crash would, with SIGKILL."""
        assert self._process is not None, f"{self._command} does not run"
        self._spent += process.cpu_seconds(self._process.pid)
        self._process.kill()
        self._process.wait()
        self._process = None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def cpu_seconds(self) -> float:
        running = 0.0 if self._process is None else process.cpu_seconds(self._process.pid)
        return self._spent + running

    def resident_bytes(self) -> int:
        return 0 if self._process is None else process.resident_bytes(self._process.pid)

    def wait_until_it_says(self, word: str) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while word not in self.log.read_text(errors="replace"):
            if time.monotonic() > deadline or not self.runs:
                raise ChildProcessError(f"{self._command} is not ready:\n{self.last_words()}")
            time.sleep(0.005)

    def last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
