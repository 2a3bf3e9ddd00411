"""Processes that find only what `pip install headrace` brings, though all packages are installed."""

import os
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def base_distributions() -> set[str]:
    """Return the installed distributions that the dependencies in pyproject.toml name or need."""
    waiting = [Requirement(each) for each in PROJECT["dependencies"]]
    found: set[str] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        found.add(name)
        waiting += map(Requirement, metadata.distribution(name).requires or ())
    return found


@cache
def hidden_packages() -> frozenset[str]:
    """Return the importable packages of all other distributions."""
    base = base_distributions() | {"headrace", "pip", "setuptools"}
    return frozenset(
        module
        for module, distributions in metadata.packages_distributions().items()
        if not base & set(map(canonicalize_name, distributions)) and not module.startswith("_")
    )


def environment() -> dict[str, str]:
    """Return the environment of such a process."""
    hiding = Path(__file__).with_name("without_extras")
    path = os.pathsep.join([str(hiding), str(REPOSITORY / "src")])
    return {**os.environ, "PYTHONPATH": path, "HIDDEN_PACKAGES": ",".join(sorted(hidden_packages()))}
