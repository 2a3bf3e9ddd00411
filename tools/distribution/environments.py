"""An empty environment with wheel or sdist and one extra in it: its size, and what its commands do."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from distribution.commands import Failed, run
from distribution.uses import use

PLAIN: Final = ""
MOST_PLAIN_MB: Final = 60
INSTALL_S: Final = 1800.0
_OF_INSTALLERS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an environment turned out to be; `failure` is empty if all is well."""

    python: str
    what: str
    megabytes: int = 0
    seconds: float = 0
    failure: str = ""


def examine(uv: Path, python: str, interpreter: Path, archive: Path, extra: str) -> Outcome:
    """Install wheel or sdist with the extra into a new environment, and use it."""
    began = time.monotonic()
    what = "sdist" if archive.name.endswith(".tar.gz") else extra or "plain"
    with tempfile.TemporaryDirectory(prefix="headrace-dist-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        try:
            megabytes = _install(uv, interpreter, root / "environment", archive, extra)
            use(root / "environment" / "bin", root, extra)
        except (Failed, OSError) as error:
            return Outcome(python, what, seconds=time.monotonic() - began, failure=str(error))
    return Outcome(python, what, megabytes, time.monotonic() - began)


def _install(uv: Path, interpreter: Path, environment: Path, archive: Path, extra: str) -> int:
    """Return the size of what was installed, compiled as pip does."""
    run([uv, "venv", "--quiet", "--no-python-downloads", "--python", interpreter, environment])
    wanted = f"headrace[{extra}] @ {archive.as_uri()}" if extra else str(archive)
    python = environment / "bin" / "python"
    run([uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, wanted], INSTALL_S)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    megabytes = -(-_size(packages) // 10**6)
    if extra == PLAIN and megabytes >= MOST_PLAIN_MB:
        raise Failed(f"{megabytes} MB are installed, expected less than {MOST_PLAIN_MB}")
    return megabytes


def _size(packages: Path) -> int:
    """Return the bytes of all files, without those of installers."""
    counted = 0
    for path in packages.rglob("*"):
        top = path.relative_to(packages).parts[0]
        if path.is_file() and top.partition("-")[0] not in _OF_INSTALLERS:
            counted += path.lstat().st_size
    return counted
