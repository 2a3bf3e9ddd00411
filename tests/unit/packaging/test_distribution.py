"""tools/distribution: what `make dist` accepts as wheel and sdist, and which Pythons it finds."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[3] / "tools"
SOURCES = [
    "headrace/__init__.py",
    "headrace/py.typed",
    "headrace/__init__.pyi",
    "headrace/http/console/static/main.js",
]
WHEEL = [*SOURCES, "headrace-0.1.0.dist-info/METADATA", "headrace-0.1.0.dist-info/licenses/LICENSE"]
SDIST = [
    "CHANGELOG.md",
    "LICENSE",
    "PKG-INFO",
    "README.md",
    "pyproject.toml",
    ".gitignore",
    *(f"src/{each}" for each in SOURCES),
]


@pytest.fixture(autouse=True)
def tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))


def test_a_wheel_has_the_tracked_files_and_nothing_else() -> None:
    contents = import_module("distribution.contents")
    assert list(contents.wheel_problems(WHEEL, SOURCES)) == []
    assert list(contents.wheel_problems([*WHEEL, "headrace/new.py"], SOURCES)) == [
        "the wheel has headrace/new.py"
    ]
    assert "the wheel lacks headrace/py.typed" in list(
        contents.wheel_problems(set(WHEEL) - {"headrace/py.typed"}, SOURCES)
    )
    assert list(contents.wheel_problems(WHEEL[:-1], SOURCES)) == ["the wheel lacks the licence"]


@pytest.mark.parametrize("unwanted", ["headrace/__pycache__/a.pyc", "tests/test_a.py", "headrace/tests/a.py"])
def test_what_is_not_for_users_is_found_even_if_it_is_tracked(unwanted: str) -> None:
    contents = import_module("distribution.contents")
    found = list(contents.wheel_problems([*WHEEL, unwanted], [*SOURCES, unwanted]))
    assert found == [f"the wheel has {unwanted}, which is not for users"]


def test_the_package_of_test_helpers_is_for_users() -> None:
    contents = import_module("distribution.contents")
    helpers = "headrace/testing/plugin.py"
    assert list(contents.wheel_problems([*WHEEL, helpers], [*SOURCES, helpers])) == []


def test_an_sdist_has_what_a_wheel_is_built_from() -> None:
    contents = import_module("distribution.contents")
    names = [f"headrace-0.1.0/{each}" for each in SDIST]
    assert list(contents.sdist_problems(names, SOURCES)) == []
    assert list(contents.sdist_problems(names[1:], SOURCES)) == ["the sdist lacks CHANGELOG.md"]
    assert list(contents.sdist_problems([*names, "headrace-0.1.0/secrets.txt"], SOURCES)) == [
        "the sdist has secrets.txt"
    ]


def test_relative_links_of_a_readme_are_found() -> None:
    contents = import_module("distribution.contents")
    head = "Metadata-Version: 2.4\nName: headrace\n\n"
    assert list(contents.readme_problems(f"{head}[a](https://example.com) [b](docs/b.md)")) == [
        "the README has the relative link docs/b.md"
    ]
    assert list(contents.readme_problems(f"{head}no link")) == ["the README has no links"]


def test_this_python_is_found_and_others_are_not_invented() -> None:
    interpreters = import_module("distribution.interpreters")
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert this in interpreters.find_all()
    assert interpreters.find("3.99") is None


def test_a_command_that_fails_or_hangs_is_a_failure_with_a_sentence() -> None:
    commands = import_module("distribution.commands")
    program = [sys.executable, "-c"]
    assert commands.run([*program, "print('tea')"]) == "tea\n"
    with pytest.raises(commands.Failed, match=r"failed: there is no tea$"):
        commands.run([*program, "import sys; sys.exit('there is no tea')"])
    with pytest.raises(commands.Failed, match=r"did not end within 0 s$"):
        commands.run([*program, "import time; time.sleep(60)"], timeout_s=0.01)


def test_every_extra_is_used_for_what_it_brings() -> None:
    uses = import_module("distribution.uses")
    names = set(import_module("distribution.__main__").extras_of_project())
    assert uses.HAS_HTTP | uses.PROGRAMS.keys() | uses.SECURITY == names
