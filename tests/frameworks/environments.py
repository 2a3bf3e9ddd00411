"""A virtual environment for each framework, with the versions in requirements/frameworks, made once."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from compat.registry_clients.programs import ClientUnavailable, fetch, kept

REQUIREMENTS: Final = Path(__file__).parents[2] / "requirements" / "frameworks"
JOBS: Final = Path(__file__).parent / "jobs"


def python_with(framework: str) -> Path:
    """Return a Python that has the framework; ClientUnavailable if it cannot be installed here."""
    requirements = REQUIREMENTS / f"{framework}.txt"

    def install(directory: Path) -> None:
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(directory)], capture_output=True, text=True, check=False
        )
        if made.returncode:
            raise ClientUnavailable(f"python -m venv failed: {made.stdout}{made.stderr}")
        pip = [str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
        fetch([*pip, "--require-hashes", "-r", str(requirements)], directory)

    # The environment belongs to this Python: another version of it has an environment of its own.
    return kept([requirements], install, tag=sys.version) / "bin" / "python"
