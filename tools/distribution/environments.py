"""An empty environment with the wheel and one extra in it: its size, and what its commands do."""

import json
import os
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PLAIN: Final = ""
HAS_HTTP: Final = frozenset({"all", "http", "iceberg", "otel", "spark"})
MOST_PLAIN_MB: Final = 60
COMMAND_S: Final = 120
_OF_INSTALLERS: Final = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


class Failed(Exception):
    """An environment is not what it has to be; the message says why."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an environment turned out to be; `failure` is empty if all is well."""

    python: str
    extra: str
    megabytes: int = 0
    seconds: float = 0
    failure: str = ""


def examine(uv: Path, python: str, interpreter: Path, wheel: Path, extra: str) -> Outcome:
    """Install the wheel with the extra into a new environment, and use it."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headrace-dist-", ignore_cleanup_errors=True) as name:
        root = Path(name)
        try:
            megabytes = _install(uv, interpreter, root / "environment", wheel, extra)
            _use(root / "environment" / "bin" / "headrace", root, extra)
        except Failed as error:
            return Outcome(python, extra, seconds=time.monotonic() - began, failure=str(error))
    return Outcome(python, extra, megabytes, time.monotonic() - began)


def _install(uv: Path, interpreter: Path, environment: Path, wheel: Path, extra: str) -> int:
    """Return the size of what was installed, compiled as pip does."""
    _run([uv, "venv", "--quiet", "--no-python-downloads", "--python", interpreter, environment])
    wanted = f"headrace[{extra}] @ {wheel.as_uri()}" if extra else str(wheel)
    python = environment / "bin" / "python"
    _run([uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, wanted], timeout_s=1200)
    (packages,) = (environment / "lib").glob("python*/site-packages")
    megabytes = -(-_disk_usage(packages) // 1024**2)
    if extra == PLAIN and megabytes >= MOST_PLAIN_MB:
        raise Failed(f"{megabytes} MB are installed, expected less than {MOST_PLAIN_MB}")
    return megabytes


def _disk_usage(packages: Path) -> int:
    """Return the bytes of disk blocks, as `du` counts them, without those of installers."""
    counted = 0
    for path in packages.rglob("*"):
        top = path.relative_to(packages).parts[0]
        if top.partition("-")[0] not in _OF_INSTALLERS:
            counted += path.lstat().st_blocks * 512
    return counted


def _use(headrace: Path, root: Path, extra: str) -> None:
    """Run a broker, write and read a record, and ask the gateway if there should be one."""
    if not (_run([headrace, "--version"]).startswith("headrace, version")):
        raise Failed("headrace --version does not print its version")
    with _broker(headrace, root) as ready:
        target = ["--bootstrap", ready["bootstrap"]]
        _run([headrace, *target, "produce", "orders", "tea"])
        read = _run([headrace, *target, "consume", "orders", "--exit-at-end"])
        if read != "tea\n":
            raise Failed(f"consume printed {read!r}, expected 'tea'")
        if ("http" in ready) != (extra in HAS_HTTP):
            raise Failed(f"the ready line is {ready}")
        if "http" in ready:
            _ask_gateway(ready["http"])


@contextmanager
def _broker(headrace: Path, root: Path) -> Iterator[Mapping[str, str]]:
    """Yield the addresses of the ready line of `headrace up`."""
    log = root / "up.log"
    command = [str(headrace), "up", "--data", str(root / "data"), "--port", "0", "--json"]
    with log.open("w") as stderr:
        up = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=_environment())  # noqa: S603
    assert up.stdout is not None
    try:
        line = up.stdout.readline()
        if not line:
            raise Failed(f"headrace up failed: {log.read_text()[-500:]}")
        yield json.loads(line)
    finally:
        up.terminate()
        up.wait(timeout=COMMAND_S)
        up.stdout.close()
    if up.returncode:
        raise Failed(f"headrace up ended with status {up.returncode}: {log.read_text()[-500:]}")


def _ask_gateway(url: str) -> None:
    for path, expected in (("/subjects", b"[]"), ("/ui", b"Headrace")):
        with urllib.request.urlopen(f"{url}{path}", timeout=COMMAND_S) as response:  # noqa: S310  our own gateway
            if expected not in response.read():
                raise Failed(f"{path} of the gateway does not contain {expected!r}")


def _run(command: "list[str | Path]", timeout_s: float = COMMAND_S) -> str:
    done = subprocess.run(  # noqa: S603
        list(map(str, command)),
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
        env=_environment(),
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Failed(f"{Path(command[0]).name} {' '.join(map(str, command[1:3]))} failed: {last[:300]}")
    return done.stdout


def _environment() -> dict[str, str]:
    """Return our environment without what would let an environment find the checkout."""
    hidden = ("HEADRACE_", "PYTHON", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
