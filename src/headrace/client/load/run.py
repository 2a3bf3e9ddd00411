"""Workers of a load as processes: started together, listened to, and gone when the block ends."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

from headrace.background import BackgroundThread
from headrace.client.errors import ClientError
from headrace.client.load.figures import Task

LOOK_S: Final = 0.1
PATIENCE_S: Final = 60.0  # beyond the time that a task may take: connecting, and the last answers

_SILENT: Final[dict[str, Any]] = {"records": 0, "seconds": 0.0}


class Worker:
    """One process, and the last that it has said."""

    def __init__(self, task: Task) -> None:
        self.latest = _SILENT
        self._process = subprocess.Popen(  # noqa: S603  our own module
            [sys.executable, "-m", "headrace.client.load.worker", task.encode()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,  # a Ctrl-C is for who has started it, who ends it
        )
        self._listening = BackgroundThread(self._listen, name="load-worker", stop=self._process.kill)
        self._listening.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True once all is said; ClientError if it could not do what it was to do."""
        if self._process.poll() is None:
            return False
        self._listening.join()
        if not self.latest.get("done"):
            raise ClientError(
                f"a client of the load has ended: {self.latest.get('error', 'it did not say why')}"
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
    """Several at a time.

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
        """How many records it is in how many seconds, a few times a second, until all have ended."""
        deadline = time.monotonic() + PATIENCE_S + max(task.seconds for task in self._tasks)
        while any([not worker.ended for worker in self.all]):  # noqa: C419  one that fails is noticed at once
            if time.monotonic() > deadline:
                raise ClientError("the load does not come to its end: see the brokers' logs")
            yield self.total()
            time.sleep(LOOK_S)
        yield self.total()

    @property
    def done(self) -> bool:
        """Whether one of them has nothing more to do."""
        return any(worker.latest.get("done") for worker in self.all)

    def total(self) -> tuple[int, float]:
        return (
            sum(worker.latest.get("records", 0) for worker in self.all),
            max(worker.latest.get("seconds", 0.0) for worker in self.all),
        )
