"""A real broker in a process of its own, on loopback: started, stopped, killed, restarted on its data."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

RUNNER: Final = Path(__file__).with_name("runner.py")
START_TIMEOUT_S: Final = 30
STOP_TIMEOUT_S: Final = 20
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
SETTINGS: Final = {
    "broker.id": "1",
    "zookeeper.session.timeout.ms": "1000",  # what a restart after a kill may have to wait for
}


class BrokerProcess:
    """A broker with its coordinator and their data.

    with BrokerProcess(tmp_path) as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap)
        broker.kill()
        broker.start()  # the same port, the same data

    Leaving the block ends the process whatever happened.
    """

    def __init__(self, root: Path, settings: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.log_dir = root / "logs"
        self.server_log = root / "broker.log"
        self.bootstrap = ""
        self._settings = SETTINGS | {"log.dirs": str(self.log_dir)} | dict(settings or {})
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    @property
    def pid(self) -> int:
        assert self._process is not None, "the broker is not running"
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def rss_bytes(self) -> int:
        """The memory the process holds now."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * PAGE_BYTES

    @property
    def peak_rss_bytes(self) -> int:
        """The most memory the process has ever held."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    @property
    def open_sockets(self) -> int:
        links = [str(link.readlink()) for link in Path(f"/proc/{self.pid}/fd").iterdir() if link.is_symlink()]
        return sum(link.startswith("socket:") for link in links)

    def start(self) -> None:
        """Start the process and return once it takes connections, where it took them before."""
        self.root.mkdir(parents=True, exist_ok=True)
        listeners = f"PLAINTEXT://{self.bootstrap or '127.0.0.1:0'}"
        settings = {"listeners": listeners} | self._settings
        arguments = [f"{name}={value}" for name, value in settings.items()]
        with self.server_log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(self.root), *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            self.bootstrap = self._wait_until_ready(self._process)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Shut down cleanly, as SIGTERM does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(STOP_TIMEOUT_S)
            self._reap()

    def kill(self) -> None:
        """End the process as a crash would, with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None

    def _wait_until_ready(self, process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            readable, _, _ = select.select([process.stdout], [], [], deadline - time.monotonic())
            line = process.stdout.readline() if readable else ""
            if line.startswith("ready "):
                return line.split()[1]
            if process.poll() is not None:
                break
        last_lines = "\n".join(self.server_log.read_text().splitlines()[-20:])
        raise ChildProcessError(f"the broker is not ready; the end of its log:\n{last_lines}")

    def complaints(self) -> list[str]:
        """Errors and stack traces in the broker's log: what no client may bring about."""
        lines = self.server_log.read_text().splitlines()
        return [line for line in lines if " ERROR " in line or line.startswith("Traceback")]
