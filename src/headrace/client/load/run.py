"""The worker processes of a load: started together, and killed when the block ends."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from headrace.client.errors import ClientError
from headrace.client.load.figures import Task
from headrace.system.background import BackgroundThread

LOOK_S: Final = 0.1
GRACE_S: Final = 60.0  # beyond the time of a task, for connections and the last responses

_SILENT: Final[dict[str, Any]] = {"records": 0, "seconds": 0.0}


class Worker:
    """One process, and its latest report."""

    def __init__(self, task: Task) -> None:
        self.latest = _SILENT
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headrace.client.load.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # Ctrl-C is for the parent, which kills the worker
        )
        assert self._process.stdin is not None
        with self._process.stdin as stdin:
            stdin.write(task.encode())
        self._listening = BackgroundThread(self._listen, name="load-worker", stop=self._process.kill)
        self._listening.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether the process has ended; ClientError if its task failed."""
        if self._process.poll() is None:
            return False
        self._listening.join()
        if not self.latest.get("done"):
            raise ClientError(
                f"a client of the load failed: {self.latest.get('error', 'it reported no error')}"
            )
        return True

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.latest = json.loads(line)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._listening.join()
        if self._process.stdout is not None:
            self._process.stdout.close()


class Workers:
    """The workers of a phase.

    with Workers(tasks) as workers:
        for records, seconds in workers.progress(): …
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self.all: list[Worker] = []

    def __enter__(self) -> Self:
        self.all = [Worker(task) for task in self._tasks]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.all:
            worker.kill()

    def progress(self) -> Iterator[tuple[int, float]]:
        """Yield the number of records and of seconds, a few times a second, until all workers have ended."""
        deadline = time.monotonic() + GRACE_S + max(task.seconds for task in self._tasks)
        while any([not worker.ended for worker in self.all]):  # noqa: C419  every worker is checked, so a failure is noticed at once
            if time.monotonic() > deadline:
                raise ClientError("the load does not end: see the brokers' logs")
            yield self.total()
            time.sleep(LOOK_S)
        yield self.total()

    @property
    def done(self) -> bool:
        """Whether one of the workers is done."""
        return any(worker.latest.get("done") for worker in self.all)

    def total(self) -> tuple[int, float]:
        return (
            sum(worker.latest.get("records", 0) for worker in self.all),
            max(worker.latest.get("seconds", 0.0) for worker in self.all),
        )
