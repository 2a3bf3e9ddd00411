"""What pages say can be done: every command in them is one, every setting is one."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from headrace.broker.settings.broker import BROKER_SETTINGS
from headrace.broker.settings.topic import TOPIC_SETTINGS
from headrace.cli.main import commands

DOCS = Path(__file__).parents[3] / "docs"
GENERATED = {"apis.md", "cli.md", "config.md"}
PAGES = [DOCS.parent / "README.md", *sorted(page for page in DOCS.glob("*.md") if page.name not in GENERATED)]
OF_CLIENTS = {
    "auto.offset.reset",
    "check.crcs",
    "exactly.once.source.support",
    "group.protocol",
    "isolation.level",
    "linger.ms",
    "max.poll.interval.ms",
    "transaction.timeout.ms",
    "transactional.id",
}
NO_SETTINGS = {
    "up.log",
    "headrace.segments",
    "partition.metadata",
    "server.properties",
    "offsets.csv",
    "bench.json",
}


def written() -> Iterator[tuple[str, str]]:
    """Each command, with its page: in lines of code, and in the middle of sentences."""
    for page in PAGES:
        text = re.sub(r"<!--.*?-->|\\\n *", "", page.read_text("utf-8"), flags=re.DOTALL)
        blocks = "\n".join(re.findall(r"^```(?:sh|)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE))
        lines = re.findall(r"^ {4,}.*$", text, re.MULTILINE) + blocks.splitlines()
        for line in [*lines, *re.findall(r"(?<!`)`(headrace [^`]*)`(?!`)", text)]:
            for piece in re.split(r" [|&]+ | > | # |\$\(|\)", line):
                command = re.search(r"(?:^|[= ])(headrace [a-z].*)$", piece.strip())
                if command is not None and not re.search(r"import|pip install", piece):
                    yield page.name, command[1].strip()


@pytest.mark.parametrize(("page", "command"), sorted(set(written())))
def test_a_command_can_be_given_as_it_is_written(page: str, command: str) -> None:
    _, *arguments = shlex.split(command)
    found: click.Command = commands
    context = click.Context(found, info_name="headrace", **found.context_settings)
    while isinstance(found, click.Group) and not _runs_alone(found, arguments):
        name, *arguments = arguments
        inner = found.get_command(context, name)
        assert inner is not None, f"there is no {name} in {page}"
        found, context = inner, click.Context(inner, parent=context, info_name=name)
    found.make_parser(context).parse_args(arguments)  # raises for an option that it does not have


def _runs_alone(group: click.Group, arguments: list[str]) -> bool:
    """Whether the group itself is meant: a noun without a verb, or `headrace broker --config FILE`."""
    return not arguments or (group.invoke_without_command and arguments[0].startswith("-"))


@pytest.mark.parametrize("page", ["operations.md", "moving.md", "limits.md"])
def test_settings_are_called_what_they_are_called(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    named = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)(?:=[^`]*)?`", text))
    known = {*BROKER_SETTINGS.by_name, *TOPIC_SETTINGS.by_name, *OF_CLIENTS, *NO_SETTINGS}

    assert named - known == set()
    assert len(named) > 5 or page == "limits.md"


def test_settings_that_are_said_to_have_no_effect_have_none() -> None:
    page = (DOCS / "moving.md").read_text("utf-8")
    rows = re.findall(r"^\| (.*) \| accepted, no effect", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([a-z.]+[a-z])`", row)}

    assert len(named) > 5
    for name in named:
        assert "No effect" in BROKER_SETTINGS.by_name[name].doc, name


@pytest.mark.parametrize("extra", ["none", "security", "http"])
def test_the_page_about_security_names_what_is_installed(extra: str) -> None:
    (row,) = re.findall(
        rf"^\| `?{extra}`?: .*? \| (.*) \|$", (DOCS / "security.md").read_text("utf-8"), re.MULTILINE
    )
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["project"]
    needed = project["dependencies"] if extra == "none" else project["optional-dependencies"][extra]
    names = {re.split(r"[\[>=;]", each)[0] for each in needed if not each.startswith("headrace[")}

    assert set(re.findall("`([a-z0-9-]+)`", row)) - {"security"} == names


@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.name)
def test_what_belongs_to_a_point_of_a_list_is_indented_by_four(page: Path) -> None:
    """GitHub is content with three. Python's Markdown ends the list there, and code becomes a sentence."""
    text = re.sub(r"^( *)```.*?^\1```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)

    assert re.findall(r"^(?:\d+\.|-) .*(?:\n.+)*\n\n((?: {1,3}| {5,7})[^ \n].*)", text, re.MULTILINE) == []
