"""Spark drivers in processes of their own, which tests kill with all their processes while they write."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cluster.waiting import until
from subprocesses import environment_with_tests

TIMEOUT_S: Final = 500


@contextmanager
def driver_process(module: str, *arguments: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a module of the tests; kill what is left of it, and of its children, in the end."""
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=environment_with_tests(),
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):  # it has ended
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drivers:
    """Drivers of one query, one after another.

    The arguments of `module` are a directory of its own below `root`, `bootstrap`, and "killed" or "end", or
    when the driver kills itself.
    """

    module: str
    root: Path
    bootstrap: str
    checkpoint: Path

    @property
    def batches(self) -> int:
        """How many batches Spark has noted as committed."""
        return len([each for each in (self.checkpoint / "commits").glob("*") if each.name.isdecimal()])

    def kill_in_turn(
        self, kills: int, chance: random.Random, *, most_batches: int, suicides: Sequence[str] = ()
    ) -> None:
        """Kill drivers, each after one to `most_batches` batches; the last one runs to the end.

        Before that, drivers kill themselves when `suicides` say.
        """
        for run in range(kills):
            self._kill_after(run, self.batches + chance.randint(1, most_batches))
        for run, when in enumerate((*suicides, "end"), kills):
            with self._driver(run, when) as process:
                expected = 0 if when == "end" else -signal.SIGKILL
                assert process.wait(TIMEOUT_S) == expected, self._log(run).read_text()

    def _kill_after(self, run: int, batches: int) -> None:
        with self._driver(run, "killed") as process:
            until(
                f"driver {run} has committed batch {batches}",
                lambda: self.batches >= batches or process.poll() is not None,
                timeout_s=TIMEOUT_S,
            )
            assert process.poll() is None, self._log(run).read_text()

    @contextmanager
    def _driver(self, run: int, until_when: str) -> Iterator[subprocess.Popen[bytes]]:
        directory = str(self.root / f"run-{run}")
        with driver_process(
            self.module, directory, self.bootstrap, until_when, log=self._log(run)
        ) as process:
            yield process

    def _log(self, run: int) -> Path:
        return self.root / f"driver-{run}.log"
