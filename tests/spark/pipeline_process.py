"""`headrace pipeline` in a process of its own, with what it prints in a file."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from headrace.client.records.one_by_one import Record, Writer

TIMEOUT_S: Final = 400.0
HEADRACE: Final = str(Path(sys.executable).with_name("headrace"))


class PipelineProcess:
    """A running `headrace pipeline run`; `name` is that of its log in `directory`."""

    def __init__(
        self, directory: Path, *arguments: str, name: str = "run", variables: Mapping[str, str] | None = None
    ) -> None:
        self._log = directory / f"{name}.log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [HEADRACE, "pipeline", "run", *arguments],
                cwd=directory,
                env={**os.environ, **(variables or {})},
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def output(self) -> str:
        return self._log.read_text(errors="replace")

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait; AssertionError with the output if the process ends first, or if it takes too long."""
        deadline = time.monotonic() + TIMEOUT_S
        while not is_so():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.2)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


def headrace(directory: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """Run `headrace pipeline …` and return what it prints; AssertionError if it fails."""
    done = subprocess.run(
        [HEADRACE, "pipeline", *arguments],
        cwd=directory,
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_numbers(bootstrap: str, topic: str, numbers: range) -> None:
    """Write a record {"n": number} for each number."""
    writer = Writer(bootstrap, topic)
    for number in numbers:
        writer.write(Record(key=str(number).encode(), value=json.dumps({"n": number}).encode()))
    writer.flush()
