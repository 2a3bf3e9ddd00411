"""Clients of other languages, in programs that answer one question each: JSON in, JSON out.

A question is {"verb": "register", "remove", "write" or "read", "http": URL, "bootstrap": address, "topic": …,
"subject": …, the schemas of a `Format`, "descriptors": base64, "values": […], "count": …}; what the answer is
depends on the verb. What the programs need is fetched once, into a directory of the user's cache; every later
run finds it there and needs no network.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace-registry-clients"
FETCH_TIMEOUT_S: Final = 300
ANSWER_TIMEOUT_S: Final = 60


class ClientUnavailable(Exception):
    """A client cannot be run here; the message says what to install."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A client, as a command and what has to be in its environment."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What it answers; an AssertionError with its complaints if it fails."""
        ran = subprocess.run(
            self.command,
            env={**os.environ, **self.environment},
            input=json.dumps(question),
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_TIMEOUT_S,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)


def node_program(name: str) -> Program:
    """`node/<name>.js`, with its packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise ClientUnavailable("Node's registry clients need node (18 or newer) and npm.")
    source = HERE / "node"
    lists = [source / "package.json", source / "package-lock.json"]

    def install(directory: Path) -> None:
        for each in lists:
            shutil.copy(each, directory)
        _fetch([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

    packages = _kept(lists, install) / "node_modules"
    return Program(command=[node, str(source / f"{name}.js")], environment={"NODE_PATH": str(packages)})


def go_program() -> Program:
    """`go/`, compiled."""
    go = shutil.which("go")
    if go is None:
        raise ClientUnavailable("Go's registry client needs go (1.26 or newer).")
    source = HERE / "go"

    def build(directory: Path) -> None:
        _fetch([go, "mod", "download"], source)
        made = subprocess.run(
            [go, "build", "-o", str(directory / "client"), "."],
            cwd=source,
            capture_output=True,
            text=True,
            check=False,
            timeout=FETCH_TIMEOUT_S,
        )
        assert made.returncode == 0, made.stderr

    return Program(command=[str(_kept(sorted(source.iterdir()), build) / "client")])


def _fetch(command: Sequence[str], directory: Path) -> None:
    try:
        ran = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False, timeout=FETCH_TIMEOUT_S
        )
    except subprocess.TimeoutExpired as late:
        raise ClientUnavailable(f"{' '.join(command)} was not done in {FETCH_TIMEOUT_S} s.") from late
    if ran.returncode:
        raise ClientUnavailable(
            f"{' '.join(command)} failed; it needs a network. It said: {ran.stderr[-500:]}"
        )


def _kept(inputs: Sequence[Path], make: Callable[[Path], None]) -> Path:
    """The directory that `make` fills, made anew when the inputs change."""
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in inputs)).hexdigest()[:12]
    kept = CACHE / digest
    with _only_one_process():
        if not kept.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                filled = Path(scratch) / "filled"
                filled.mkdir()
                make(filled)
                filled.rename(kept)  # all of it or none
    return kept


@contextmanager
def _only_one_process() -> Iterator[None]:
    CACHE.mkdir(parents=True, exist_ok=True)
    lock = os.open(CACHE / "lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)  # which also unlocks
