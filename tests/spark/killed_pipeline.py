"""The story of a pipeline of numbers that is killed and run again, with its state on a server."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark.pipeline_process import PipelineProcess, headrace, write_numbers


@dataclass(frozen=True, slots=True)
class KilledPipeline:
    """The pipeline `numbers` of numbers.py in `directory`; `rows` returns what is in its table."""

    directory: Path
    topic: str
    state: str
    bootstrap: str
    rows: Callable[[], Sequence[int]]
    arguments: Sequence[str] = ()
    variables: Mapping[str, str] | None = None

    def run_until_killed(self) -> None:
        """Run it until it has written rows, and kill it while there is more to do."""
        first = self._start("run")
        try:
            write_numbers(self.bootstrap, self.topic, range(1000))
            first.wait_until(lambda: bool(self.rows()))
            write_numbers(self.bootstrap, self.topic, range(1000, 2000))
            first.process.send_signal(signal.SIGKILL)
        finally:
            first.end()

    @contextmanager
    def running_again(self) -> Iterator[PipelineProcess]:
        """Run it again until all rows are there; after the block it is stopped, with each row once."""
        second = self._start("again")
        try:
            write_numbers(self.bootstrap, self.topic, range(2000, 3000))
            second.wait_until(lambda: len(self.rows()) >= 3000)
            status = self.headrace("status", "numbers")
            assert f"pipeline numbers: running, process {second.process.pid}" in status
            yield second
            assert self.headrace("stop", "numbers") == f"stopped numbers, process {second.process.pid}\n"
            assert second.process.wait(60) == 0, second.output
        finally:
            second.end()
        assert sorted(self.rows()) == list(range(3000))

    def headrace(self, *arguments: str) -> str:
        """Return what `headrace pipeline …` prints."""
        return headrace(self.directory, *arguments, "--state", self.state, variables=self._environment)

    @property
    def _environment(self) -> dict[str, str]:
        return {**(self.variables or {}), "HEADRACE_BOOTSTRAP": self.bootstrap}

    def _start(self, name: str) -> PipelineProcess:
        given = ("numbers.py", "--state", self.state, "--master", "local[2]", *self.arguments)
        return PipelineProcess(self.directory, *given, name=name, variables=self._environment)
