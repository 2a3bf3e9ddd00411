"""A cluster that lasts as long as a bench or a demo: `headrace up` as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headrace.cli.support.process import CommandFailed

_STOP_TIMEOUT_S: Final = 30


@contextmanager
def temporary_cluster(
    directory: Path, brokers: int, *arguments: str, new_session: bool = False
) -> Iterator[str]:
    """Run `headrace up` with its data in `directory` while the block runs; yield its bootstrap servers.

    In a `new_session` it does not get the Ctrl-C that ends the block, which can still use the cluster.
    """
    log = directory / "up.log"
    with log.open("a") as file:
        process = subprocess.Popen(  # noqa: S603  our own program
            [
                *(sys.executable, "-m", "headrace", "up", f"--data={directory / 'data'}"),
                *("--port=0", f"--brokers={brokers}", *arguments),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            text=True,
            start_new_session=new_session,
            env={name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")},
        )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line.startswith("ready "):
            lines = log.read_text().strip().splitlines()
            raise CommandFailed(f"the cluster did not start: {lines[-1] if lines else 'its log is empty'}")
        yield line.split()[1].partition("=")[2]
    finally:
        process.terminate()
        process.wait(_STOP_TIMEOUT_S)
        process.stdout.close()
