"""The command: python -m distribution --tools .venv-dist/bin [--python 3.12] [--extra http] [--jobs 2]."""

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Final

from distribution.contents import (
    readme_problems,
    sdist_names,
    sdist_problems,
    wheel_metadata,
    wheel_names,
    wheel_problems,
)
from distribution.environments import PLAIN, Outcome, examine
from distribution.interpreters import VERSIONS, find_all

REPOSITORY: Final = Path(__file__).parents[2]
DIST: Final = REPOSITORY / "dist"
SDIST: Final = "sdist"
HAS_SPARK: Final = frozenset({"all", "iceberg", "spark"})
ROW: Final = "{:<8} {:<10} {:>6}  {:>8}  {}"


def main(arguments: Sequence[str]) -> int:
    options = _options(arguments)
    wheel, sdist = build(options.tools)
    problems = check(options.tools, wheel, sdist)
    for each in problems:
        print(f"dist: {each}")
    if problems:
        return 1
    print(f"dist: {wheel.relative_to(REPOSITORY)} and {sdist.name} are in order")
    return try_out(options, wheel, sdist)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("make dist")
    parser.add_argument(
        "--tools", type=Path, required=True, help="the bin directory with build, twine and uv"
    )
    parser.add_argument(
        "--python", action="append", choices=VERSIONS, help="default: every one that is installed"
    )
    names = ["plain", SDIST, *extras_of_project()]
    parser.add_argument(
        "--extra", action="append", choices=names, help="`plain`, `sdist` or an extra; default: all"
    )
    parser.add_argument("--jobs", type=int, default=2, help="environments at a time")
    return parser.parse_args(arguments)


def build(tools: Path) -> tuple[Path, Path]:
    """Build the sdist from the checkout, and the wheel from the sdist; return both files."""
    for old in DIST.glob("headrace-*"):
        old.unlink()
    command: list[str | Path] = [
        tools / "python",
        "-m",
        "build",
        "--no-isolation",
        "--outdir",
        DIST,
        REPOSITORY,
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    (wheel,), (sdist,) = DIST.glob("headrace-*.whl"), DIST.glob("headrace-*.tar.gz")
    return wheel, sdist


def check(tools: Path, wheel: Path, sdist: Path) -> list[str]:
    """Return what is wrong with the two files."""
    listed = subprocess.run(
        ["git", "ls-files", "src"],  # noqa: S607
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    sources = [each.removeprefix("src/") for each in listed.stdout.splitlines()]
    problems = [*wheel_problems(wheel_names(wheel), sources), *sdist_problems(sdist_names(sdist), sources)]
    problems += readme_problems(wheel_metadata(wheel))
    command: list[str | Path] = [tools / "python", "-m", "twine", "check", "--strict", wheel, sdist]
    twine = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return [*problems, *([twine.stdout.strip()] if twine.returncode else [])]


def try_out(options: argparse.Namespace, wheel: Path, sdist: Path) -> int:
    """Install wheel and sdist into an environment for each Python and each extra, and print a table."""
    found = find_all()
    wanted = options.python or VERSIONS
    extras = options.extra or ["plain", SDIST, *extras_of_project()]
    cases = [(python, extra) for python in wanted if python in found for extra in extras]
    print(f"dist: {len(cases)} environments, {options.jobs} at a time; a row is printed when one is done")
    print(ROW.format("Python", "extra", "MB", "seconds", "up, produce, consume, the extra"), flush=True)
    uv = options.tools / "uv"
    with (
        tempfile.TemporaryDirectory(prefix="headrace-dist-uv-") as cache,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        # uv's own cache would grow by 2 GB with every environment that has Spark: pyspark is built for each.
        os.environ["UV_CACHE_DIR"] = cache
        os.environ["UV_FIND_LINKS"] = build_spark(options.tools, Path(cache, "wheels"), extras)
        waiting = [
            pool.submit(examine, uv, python, found[python], sdist, PLAIN)
            if extra == SDIST
            else pool.submit(examine, uv, python, found[python], wheel, PLAIN if extra == "plain" else extra)
            for python, extra in cases
        ]
        outcomes = [_printed(each.result()) for each in as_completed(waiting)]
    for each in wanted:
        if each not in found:
            print(ROW.format(each, "", "", "", "not installed on this machine: not tried"))
    failed = sum(bool(each.failure) for each in outcomes)
    print(f"dist: {len(outcomes) - failed} of {len(outcomes)} environments are in order")
    return 1 if failed or not outcomes else 0


def build_spark(tools: Path, wheels: Path, extras: Sequence[str]) -> str:
    """Return a directory with a wheel of pyspark, which is only published as source; built once for all."""
    if not HAS_SPARK.isdisjoint(extras):
        wanted = next(each for each in _optional()["spark"] if each.startswith("pyspark"))
        command: list[str | Path] = [tools / "python", "-m", "pip", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*command, "--wheel-dir", wheels, wanted], check=True)  # noqa: S603
    wheels.mkdir(exist_ok=True)
    return str(wheels)


def extras_of_project() -> list[str]:
    return sorted(_optional())


def _optional() -> dict[str, list[str]]:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    found: dict[str, list[str]] = project["optional-dependencies"]
    return found


def _printed(outcome: Outcome) -> Outcome:
    result = outcome.failure or "ok"
    size = "" if outcome.failure else outcome.megabytes
    print(ROW.format(outcome.python, outcome.what, size, f"{outcome.seconds:.0f}", result), flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
