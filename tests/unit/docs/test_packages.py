"""Every package says what it is about and where to begin; the files that it and the maps name exist."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]
SOURCE: Final = ROOT / "src" / "headrace"
PACKAGES: Final = sorted(
    path.parent.relative_to(SOURCE).as_posix()
    for path in SOURCE.rglob("__init__.py")
    if "schema" not in path.parent.parts
)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_docstring_of_a_package_names_files_that_exist(package: str) -> None:
    directory = SOURCE / package
    docstring = ast.get_docstring(ast.parse((directory / "__init__.py").read_text("utf-8"))) or ""
    assert docstring, "a package without a docstring"
    named = re.findall(r"`([\w/]+\.py)`", docstring)

    missing = [
        name
        for name in named
        if not any((base / name).exists() for base in (directory, SOURCE, SOURCE / "broker"))
    ]

    assert missing == []


def test_the_page_on_architecture_names_files_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    paths = set(re.findall(r"`((?:\w+/)+\w+\.py)`", page))

    missing = [
        name
        for name in sorted(paths)
        if not any(
            (base / name).exists()
            for base in (
                ROOT,
                SOURCE,
                SOURCE / "broker",
                SOURCE / "storage",
                SOURCE / "security",
                SOURCE / "cli",
                SOURCE / "spark" / "tables",
                SOURCE / "client",
            )
        )
    ]

    assert missing == []
