"""`headrace up --brokers 3` as a process of its own, and a broker of it that dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Self

from headrace.cli.process import Refused
from headrace.client.cluster.cluster import Cluster
from headrace.client.cluster.status import ClusterStatus

_STOP_TIMEOUT_S: Final = 30


class Up:
    """Three brokers and a coordinator on this machine, supervised."""

    def __init__(self, directory: Path, brokers: int) -> None:
        self.bootstrap = ""
        self.took_s = 0.0
        self._command = [sys.executable, "-m", "headrace", "up", f"--data={directory / 'data'}", "--port=0"]
        self._command.append(f"--brokers={brokers}")
        self._log = directory / "up.log"
        self._process: subprocess.Popen[str]

    def __enter__(self) -> Self:
        began = time.perf_counter()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own program
                self._command, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        try:
            with self._process.stdout as output:
                line = output.readline()
        except KeyboardInterrupt:
            self.stop()
            raise
        if not line.startswith("ready "):
            raise Refused(f"headrace up did not start: {self._log.read_text()}")
        self.took_s = time.perf_counter() - began
        self.bootstrap = line.split()[1].partition("=")[2]
        return self

    def __exit__(self, *_error: object) -> None:
        if self._process.poll() is None:
            self.stop()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(_STOP_TIMEOUT_S)

    @property
    def status(self) -> ClusterStatus:
        return Cluster(self.bootstrap).status()

    def kill(self, broker_id: int) -> int:
        """SIGKILL to one broker's process; which that was."""
        pid = next(each.pid for each in self.status.brokers if each.id == broker_id)
        if pid is None:
            raise Refused(f"broker {broker_id} does not say which process it is")
        os.kill(pid, signal.SIGKILL)
        return pid

    def leader_of(self, topic: str) -> int:
        """Who leads the topic's first partition."""
        return Cluster(self.bootstrap).partitions_of(topic)[0].leader or 0
