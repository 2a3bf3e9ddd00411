"""Processes that find only what `pip install headrace` or an extra brings, though all is installed."""

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


def distributions_of(*extras: str) -> set[str]:
    """Return the distributions that `pip install headrace[extras]` brings, by pyproject.toml and metadata."""
    waiting = [Requirement("headrace"), *(Requirement(f"headrace[{extra}]") for extra in extras)]
    done: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras} - {extra for known, extra in done if known == name}:
            done.add((name, extra))
            if name == "headrace":
                lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
                waiting += map(Requirement, lines)
                continue
            needed = map(Requirement, metadata.distribution(name).requires or ())
            waiting += [
                each
                for each in needed
                if (not extra if each.marker is None else each.marker.evaluate({"extra": extra}))
            ]
    return {name for name, _ in done}


@cache
def hidden_packages(*extras: str) -> frozenset[str]:
    """Return the importable packages of all other distributions."""
    brought = distributions_of(*extras) | {"pip", "setuptools"}
    return frozenset(
        module
        for module, distributions in metadata.packages_distributions().items()
        if not brought & set(map(canonicalize_name, distributions)) and not module.startswith("_")
    )


def environment(*extras: str) -> dict[str, str]:
    """Return the environment of a process that finds what `pip install headrace[extras]` brings."""
    hiding = Path(__file__).with_name("without_extras")
    path = os.pathsep.join([str(hiding), str(REPOSITORY / "src")])
    return {**os.environ, "PYTHONPATH": path, "HIDDEN_PACKAGES": ",".join(sorted(hidden_packages(*extras)))}
