"""The Pythons of this machine that Headrace supports: on PATH, or pyenv's. None is downloaded."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

VERSIONS: Final = ("3.11", "3.12", "3.13", "3.14")
_PROGRAM: Final = "import sys; print('%d.%d' % sys.version_info[:2])"


def find_all() -> dict[str, Path]:
    """Return an interpreter for each version that there is."""
    found = {version: find(version) for version in VERSIONS}
    return {version: path for version, path in found.items() if path is not None}


def find(version: str) -> Path | None:
    """Return the first interpreter of the version that runs; a shim of pyenv may not."""
    return next((path for path in _candidates(version) if _version_of(path) == version), None)


def _candidates(version: str) -> Iterator[Path]:
    for directory in os.get_exec_path():
        if found := shutil.which(f"python{version}", path=directory):
            yield Path(found)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    installed = [each for each in root.glob(f"{version}.*") if re.fullmatch(r"[\d.]+", each.name)]
    for each in sorted(
        installed, key=lambda path: [int(part) for part in path.name.split(".")], reverse=True
    ):
        yield each / "bin" / "python"


def _version_of(path: Path) -> str | None:
    try:
        done = subprocess.run([path, "-c", _PROGRAM], capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
