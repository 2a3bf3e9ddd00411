"""Workers in processes that a test starts, closes and kills."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from subprocesses import environment_with_tests
from wire.group_stories.diary import Entry, read_diary
from wire.group_stories.kinds import Kind
from wire.group_stories.reading import Place
from wire.group_stories.waiting import eventually

CLOSE_TIMEOUT_S: Final = 30
UNLIMITED: Final = -1


class WorkerProcess:
    """A worker, from its start to its end; its diary, a file beside `path`, stays when it is gone."""

    def __init__(
        self, kind: Kind, bootstrap: str, group: str, topic: str, path: Path, *, commits: int = UNLIMITED
    ) -> None:
        self.name = path.name
        self._diary = path.with_suffix(".diary")
        self._complaints = path.with_suffix(".err")
        orders = {
            "client": kind.client,
            "options": dict(kind.options),
            "bootstrap": bootstrap,
            "group": group,
            "topics": [topic],
            "diary": str(self._diary),
            "commits": commits,
            "test": os.getpid(),
        }
        command = [sys.executable, "-m", "wire.group_stories.worker", json.dumps(orders)]
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
                env=environment_with_tests(),
            )

    @property
    def diary(self) -> list[Entry]:
        return read_diary(self._diary)

    @property
    def owned(self) -> frozenset[Place]:
        """What it has, by its own account."""
        owned: set[Place] = set()
        for entry in self.diary:
            if entry.what == "assigned":
                owned.update(entry.places)
            elif entry.what == "revoked":
                owned.difference_update(entry.places)
        return frozenset(owned)

    def records(self) -> list[tuple[Place, int, str]]:
        """What it read, in its order: partition, offset, value."""
        read = [entry for entry in self.diary if entry.what == "read"]
        return [(entry.places[0], entry.offset, entry.text) for entry in read]

    def offsets(self, place: Place) -> list[int]:
        """What it read of a partition, in its order."""
        return [offset for at, offset, _ in self.records() if at == place]

    def must_run(self) -> None:
        """Fail the test if it ended by itself."""
        assert self._process.poll() is None, f"{self.name} ended: {self._complaints.read_text()}"

    def kill(self) -> None:
        """End it as a crash would; fine if it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Have it leave its group and end."""
        eventually(self._diary.exists, tell=self._complaints.read_text)
        self._process.terminate()
        code = self._process.wait(CLOSE_TIMEOUT_S)
        assert code == 0, f"{self.name} ended with {code}: {self._complaints.read_text()}"


@contextmanager
def killed_in_the_end(workers: list[WorkerProcess]) -> Iterator[list[WorkerProcess]]:
    """A list that grows; who is in it at the end of the block is killed, if still there."""
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
