"""A Spark cluster on loopback, out of the pyspark wheel: a master and workers, each a process."""

import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pyspark

from headrace.spark.launcher import prepare
from ports import free_port
from support.process import NotReady

START_TIMEOUT_S: Final = 120.0
_SPARK_CLASS: Final = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY: Final = "org.apache.spark.deploy"


class Standalone:
    """`master` is what a session connects to; workers may be killed."""

    def __init__(self, root: Path, workers: int) -> None:
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._root = root
        self._count = workers
        self._master: subprocess.Popen[bytes]
        self.workers: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        prepare()
        port = self.master.rpartition(":")[2]
        self._master = self._start("master", f"{_DEPLOY}.master.Master", "--port", port)
        try:
            _wait_for(self._root / "master.log", "I have been elected leader")
            for number in range(self._count):
                work = self._root / f"work-{number}"
                self.workers.append(
                    self._start(
                        f"worker-{number}",
                        f"{_DEPLOY}.worker.Worker",
                        *("--cores", "1", "--memory", "1g", "--work-dir", str(work), self.master),
                    )
                )
            for number in range(self._count):
                _wait_for(self._root / f"worker-{number}.log", "Successfully registered with master")
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def kill_worker(self, number: int) -> None:
        """SIGKILL to a worker and to the executors it has started."""
        os.killpg(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].wait()

    def _start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
        with (self._root / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                [_SPARK_CLASS, command[0], "--host", "127.0.0.1", "--webui-port", "0", *command[1:]],
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _stop(self) -> None:
        for process in [*self.workers, self._master]:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _wait_for(log: Path, text: str) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while text not in log.read_text(errors="replace"):
        if time.monotonic() > deadline:
            raise NotReady(f"{log.name} does not say {text!r}:\n{log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)
