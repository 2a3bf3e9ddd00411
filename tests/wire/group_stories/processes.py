"""Workers in processes that a test starts, closes and kills."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from wire.group_stories.diary import Entry, read_diary
from wire.group_stories.kinds import Kind
from wire.group_stories.reading import Place

CLOSE_TIMEOUT_S: Final = 30
UNLIMITED: Final = -1
TESTS: Final = Path(__file__).parents[2]


class WorkerProcess:
    """A worker, from its start to its end; its diary, a file beside `path`, stays when it is gone."""

    def __init__(
        self,
        kind: Kind,
        bootstrap: str,
        group: str,
        topic: str,
        path: Path,
        *,
        commits: int = UNLIMITED,
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
        }
        command = [sys.executable, "-m", "wire.group_stories.worker", json.dumps(orders)]
        with self._complaints.open("wb") as complaints:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
                env=os.environ | {"PYTHONPATH": str(TESTS)},
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

    def offsets(self, place: Place) -> list[int]:
        """What it read of a partition, in its order."""
        return [entry.offset for entry in self.diary if entry.what == "read" and place in entry.places]

    def must_run(self) -> None:
        """Fail the test if it ended by itself."""
        assert self._process.poll() is None, f"{self.name} ended: {self._complaints.read_text()}"

    def kill(self) -> None:
        """End it as a crash would; fine if it has ended."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """Have it leave its group and end."""
        self._process.terminate()
        code = self._process.wait(CLOSE_TIMEOUT_S)
        assert code == 0, f"{self.name} ended with {code}: {self._complaints.read_text()}"


@contextmanager
def workers_until_the_end() -> Iterator[list[WorkerProcess]]:
    """A list for workers; those still there at the end of the block are killed."""
    present: list[WorkerProcess] = []
    try:
        yield present
    finally:
        for worker in present:
            worker.kill()
