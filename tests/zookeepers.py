"""Apache ZooKeeper in processes of the test: each server can be killed, and started again.

with RunningZooKeeper(tmp_path, servers=3, port=free_ports(3 * PORTS_EACH)) as ensemble:
    KazooClient(ensemble.address)
    ensemble.servers[0].kill()
"""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

from headrace.coordination.zookeeper import Server, ZooKeeper

START_TIMEOUT_S: Final = 60
STOP_TIMEOUT_S: Final = 15
POLL_S: Final = 0.05


class ZooKeeperProcess:
    """One server, start after start, with the same ports and data."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def four_letter_word(self, word: str) -> str:
        return self.server.four_letter_word(word)

    def launch(self) -> None:
        """Start the process; it serves a few seconds later."""
        command = self.server.prepare()
        with self.server.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait_until_serving(self, deadline: float) -> None:
        assert self._process is not None
        while not self.server.serves():
            tail = "\n".join(self.server.log.read_text(errors="replace").splitlines()[-20:])
            assert self._process.poll() is None, f"ZooKeeper on {self.address} has ended:\n{tail}"
            assert time.monotonic() < deadline, f"ZooKeeper on {self.address} is not serving:\n{tail}"
            time.sleep(POLL_S)

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def wait(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class RunningZooKeeper:
    """One server, or an ensemble; `options` are those of `ZooKeeper`."""

    def __init__(self, data_dir: Path, **options: Any) -> None:
        self.servers: Sequence[ZooKeeperProcess] = [
            ZooKeeperProcess(each) for each in ZooKeeper(data_dir, **options).servers
        ]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return when every server serves; kill all of them if one does not."""
        try:
            for server in self.servers:
                server.launch()
            deadline = time.monotonic() + START_TIMEOUT_S
            for server in self.servers:
                server.wait_until_serving(deadline)
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop every server; kill those that do not stop in time."""
        for server in self.servers:
            server.terminate()
        for server in self.servers:
            server.wait()

    def kill(self) -> None:
        """Kill every server, as a crash would."""
        for server in self.servers:
            server.kill()
