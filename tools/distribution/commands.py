"""Commands of an environment, which do not find the checkout, and end in time."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

COMMAND_S: Final = 180.0


class Failed(Exception):
    """An environment is not what it has to be; the message says why."""


def run(command: Sequence[str | Path], timeout_s: float = COMMAND_S) -> str:
    """Return what the command prints; Failed if it fails or does not end in time."""
    name = f"{Path(command[0]).name} {' '.join(map(str, command[1:3]))[:80]}"
    try:
        done = subprocess.run(  # noqa: S603
            list(map(str, command)),
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
            env=environment(),
        )
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{name} did not end within {timeout_s:.0f} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"{name} failed: {last[:300]}")
    return done.stdout


def environment() -> dict[str, str]:
    """Return our environment without what would let an environment find the checkout."""
    hidden = ("HEADRACE_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
