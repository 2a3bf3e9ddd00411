"""A cluster that lasts as long as a bench: `headrace up` as a process, in a temporary directory."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from headrace.cli.process import Refused

STOP_S: Final = 30


@contextmanager
def new_cluster(brokers: int, parent: Path | None) -> Iterator[str]:
    """Its bootstrap servers; it is gone, with all that was in it, when the block ends."""
    with tempfile.TemporaryDirectory(
        prefix="headrace-bench-", dir=parent, ignore_cleanup_errors=True
    ) as name:
        log = Path(name) / "up.log"
        with log.open("a") as file:
            process = _start(Path(name), brokers, file)
        try:
            yield _bootstrap(process, log)
        finally:
            process.terminate()
            process.wait(STOP_S)
            if process.stdout is not None:
                process.stdout.close()


def _start(directory: Path, brokers: int, log: IO[str]) -> subprocess.Popen[str]:
    """In a session of its own: a Ctrl-C ends the bench, which ends it, when its topics are gone."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    return subprocess.Popen(  # noqa: S603  our own program
        [
            *(sys.executable, "-m", "headrace", "up", f"--data={directory / 'data'}"),
            *("--port=0", "--no-http", f"--brokers={brokers}"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        start_new_session=True,
        env=settings,
    )


def _bootstrap(process: subprocess.Popen[str], log: Path) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line.startswith("ready "):
        said = log.read_text().strip().splitlines()
        raise Refused(f"a cluster of its own did not start: {said[-1] if said else 'it did not say why'}")
    return line.split()[1].partition("=")[2]
