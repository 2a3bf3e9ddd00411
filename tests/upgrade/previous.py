"""The previous version of Headrace: its commit, and its source from the repository's history.

The previous version is the last tag `v*` before the commit that is tested. Until there is one, it is the
commit in the file `PREVIOUS`. Brokers of it run in the virtual environment of the tests.
"""

import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

from support.process import clean_environment

ROOT: Final = Path(__file__).resolve().parents[2]
CURRENT: Final = ROOT / "src"
NAMED: Final = Path(__file__).with_name("PREVIOUS")


class NoPreviousVersion(Exception):
    """The previous version is not in the repository: a shallow clone, or no repository at all."""


@cache
def commit(root: Path = ROOT, named: Path = NAMED) -> str:
    """Return the commit of the previous version, or raise NoPreviousVersion."""
    earlier = ("--merged", "HEAD", "--no-contains", "HEAD")
    tags = _git(root, "tag", "--list", "v*", *earlier, "--sort=-version:refname")
    name = tags.split()[0] if tags else named.read_text().strip()
    return _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")


def why_not(root: Path = ROOT) -> str | None:
    """Return why the previous version cannot be run here; None if it can."""
    try:
        commit(root)
    except NoPreviousVersion as error:
        return str(error)
    return None


def extract(directory: Path) -> Path:
    """Write the source of the previous version below `directory`; return what goes on its PYTHONPATH."""
    archive = directory / "previous.tar"
    _git(ROOT, "archive", f"--output={archive}", commit(), "src")
    subprocess.run(["tar", "-xf", archive, "-C", directory], check=True)
    source = directory / "src"
    found = imported_from(source)
    assert found.is_relative_to(source), f"{found} would run instead of {source}"
    return source


def imported_from(source: Path) -> Path:
    """Return the file of the package that a process with `source` on its PYTHONPATH imports."""
    command = [sys.executable, "-c", "import headrace; print(headrace.__file__)"]
    environment = clean_environment() | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return Path(done.stdout.strip())


def run(source: Path, program: str, text: str) -> str:
    """Return what a Python program prints that imports the version in `source` and reads `text`."""
    environment = clean_environment() | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPreviousVersion(
            f"the previous version is not in the history of {root}: git {arguments[0]} has failed "
            "(a shallow clone, or a source archive, does not have it)"
        ) from error
    return done.stdout.strip()
