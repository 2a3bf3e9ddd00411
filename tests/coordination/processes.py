"""The embedded coordinator as a process of its own, as `headrace coordinator` starts it."""

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from ports import free_port

HEADRACE: Final = Path(sys.executable).with_name("headrace")
STOP_TIMEOUT_S: Final = 20


class CoordinatorProcess:
    """Keeps its port over `start` again, so that clients find it."""

    def __init__(self, data_dir: Path, *, tick_ms: int = 2000, options: tuple[str, ...] = ()) -> None:
        self._arguments = ["--data", str(data_dir), "--tick-ms", str(tick_ms), *options]
        self._port = free_port()
        self._process: subprocess.Popen[str] | None = None
        self.data_dir = data_dir
        self.log = data_dir.with_suffix(".log")

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [HEADRACE, "coordinator", "--port", str(self._port), *self._arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("ready zookeeper="), self.log.read_text()
        self._port = int(line.strip().rpartition(":")[2])

    def stop(self) -> int:
        """TERM, and the exit status."""
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=STOP_TIMEOUT_S)
        status, self._process = self._process.returncode, None
        return status

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
