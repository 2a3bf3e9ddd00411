"""Clients of other languages, in programs that answer questions: a line of JSON in, a line of JSON out.

A question is {"verb": "register", "remove", "write" or "read", "http": URL, "bootstrap": address, "topic": …,
"subject": …, the schemas of a `Format`, "descriptors": base64, "values": […], "count": …}; its answer is
{"answer": …}, or {"failed": "what went wrong"}. What programs need is fetched once, into a directory of the
user's cache; every later run finds it there and needs no network.
"""

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

from compat.locking import only_one_process
from support.process import lines

HERE: Final = Path(__file__).parent
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace-registry-clients"
FETCH_TIMEOUT_S: Final = 600  # from nothing, on a machine that is busy otherwise
ANSWER_TIMEOUT_S: Final = 60


class ClientUnavailable(Exception):
    """A client cannot be run here; the message says what to install."""


class Program:
    """A client in a process of its own, which ends with the `with` block."""

    def __init__(self, *command: str, **environment: str) -> None:
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            self._command,
            env={**os.environ, **self._environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *error: object) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.communicate()

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What it answers; an AssertionError with its complaint if it fails."""
        assert self._process is not None, "ask within a `with` block"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        said = next(lines(self._process.stdout, ANSWER_TIMEOUT_S), None)
        if said is None:
            self._process.kill()  # a late answer would pass for that to the next question
            raise AssertionError(f"it has ended, or said nothing in {ANSWER_TIMEOUT_S} s")
        answer = json.loads(said)
        assert "failed" not in answer, answer["failed"]
        return answer["answer"]


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
        fetch([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], directory)

    packages = kept(lists, install) / "node_modules"
    return Program(node, str(source / f"{name}.js"), NODE_PATH=str(packages))


def go_program(source: Path = HERE / "go") -> Program:
    """The Go module in a directory, compiled."""
    go = shutil.which("go")
    if go is None:
        raise ClientUnavailable("Go's clients need go (1.26 or newer).")

    def build(directory: Path) -> None:
        fetch([go, "mod", "download"], source)
        made = run_in([go, "build", "-o", str(directory / "client"), "."], source)
        assert made.returncode == 0, made.stderr

    return Program(str(kept(sorted(source.iterdir()), build) / "client"))


def fetch(command: Sequence[str], directory: Path) -> None:
    """Run a command that downloads; ClientUnavailable if it fails or takes too long."""
    try:
        ran = run_in(command, directory)
    except subprocess.TimeoutExpired as late:
        raise ClientUnavailable(f"{' '.join(command)} was not done in {FETCH_TIMEOUT_S} s.") from late
    if ran.returncode:
        raise ClientUnavailable(f"{' '.join(command)} failed, which needs a network: {ran.stderr[-500:]}")


def run_in(command: Sequence[str], directory: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a directory, and return its exit status and output."""
    return subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "GOTOOLCHAIN": "local"},  # a newer Go is not fetched on the way
        capture_output=True,
        text=True,
        check=False,
        timeout=FETCH_TIMEOUT_S,
    )


def kept(inputs: Sequence[Path], make: Callable[[Path], None], tag: str = "") -> Path:
    """The directory that `make` fills, made anew when the inputs or the tag change."""
    digest = hashlib.sha256(b"".join([*(each.read_bytes() for each in inputs), tag.encode()])).hexdigest()[
        :12
    ]
    target = CACHE / digest
    with only_one_process(CACHE):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
                filled = Path(scratch) / "filled"
                filled.mkdir()
                make(filled)
                filled.rename(target)  # all of it or none
    return target
