"""What has to be in a wheel and in an sdist, and what must not. Pure, but for reading the archives."""

import re
import tarfile
import zipfile
from collections.abc import Collection, Iterator
from email.parser import Parser
from pathlib import Path
from typing import Final

UNWANTED: Final = re.compile(r"(^|/)(tests?|__pycache__|bench|node_modules)/|\.(pyc|pyo|orig|rej|DS_Store)$")
REQUIRED: Final = ("headrace/py.typed", "headrace/__init__.pyi", "headrace/http/console/static/main.js")
SDIST_EXTRAS: Final = frozenset(
    {"CHANGELOG.md", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml", ".gitignore"}
)
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")


def wheel_problems(names: Collection[str], sources: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the files of a wheel; `sources` are the tracked files below src."""
    packaged = {each for each in names if ".dist-info/" not in each}
    yield from _differences("the wheel", packaged, set(sources))
    yield from (f"the wheel lacks {each}" for each in REQUIRED if each not in packaged)
    if not any(each.endswith(".dist-info/licenses/LICENSE") for each in names):
        yield "the wheel lacks the licence"


def sdist_problems(names: Collection[str], sources: Collection[str]) -> Iterator[str]:
    """Yield what is wrong with the files of an sdist, which has one directory at its top."""
    inside = {each.partition("/")[2] for each in names}
    yield from _differences("the sdist", inside, {f"src/{each}" for each in sources} | SDIST_EXTRAS)


def _differences(where: str, found: set[str], expected: set[str]) -> Iterator[str]:
    yield from (f"{where} has {each}" for each in sorted(found - expected))
    yield from (f"{where} lacks {each}" for each in sorted(expected - found))
    yield from (
        f"{where} has {each}, which is not for users" for each in sorted(filter(UNWANTED.search, found))
    )


def readme_problems(metadata: str) -> Iterator[str]:
    """Yield the links of the README that a package index could not follow."""
    message = Parser().parsestr(metadata)
    text = str(message.get_payload()) or str(message["Description"])
    links = _LINK.findall(text)
    if not links:
        yield "the README has no links"
    yield from (
        f"the README has the relative link {each}" for each in links if not each.startswith(("http", "#"))
    )


def wheel_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def wheel_metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode("utf-8")


def sdist_names(sdist: Path) -> list[str]:
    with tarfile.open(sdist) as archive:
        return [each.name for each in archive.getmembers() if each.isfile()]
