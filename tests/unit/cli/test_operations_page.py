"""docs/operations.md: every command in it is one, every setting is one, every link leads somewhere."""

import re
import shlex
from pathlib import Path

import click
import pytest

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.topic_settings import TOPIC_SETTINGS
from headrace.cli.main import commands

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
WRITTEN = re.findall(r"^ +(headrace .*)$", PAGE, re.MULTILINE) + re.findall(r"`(headrace [^`]*)`", PAGE)
COMMANDS = sorted({found.split(" > ")[0] for found in WRITTEN})


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_can_be_given_as_it_is_written(command: str) -> None:
    _, *arguments = shlex.split(command)
    found: click.Command = commands
    context = click.Context(found, info_name="headrace")
    while isinstance(found, click.Group) and not _runs_alone(found, arguments):
        name, *arguments = arguments
        inner = found.get_command(context, name)
        assert inner is not None, f"there is no {name}"
        found, context = inner, click.Context(inner, parent=context, info_name=name)
    found.make_parser(context).parse_args(arguments)  # raises for an option that it does not have


def _runs_alone(group: click.Group, arguments: list[str]) -> bool:
    """Whether it is the group itself that is meant, as in `headrace broker --config FILE`."""
    return group.invoke_without_command and (not arguments or arguments[0].startswith("-"))


def test_settings_are_called_what_they_are_called() -> None:
    named = set(re.findall(r"`([a-z]+(?:\.[a-z]+)+)(?:=[^`]*)?`", PAGE)) - {"up.log"}
    known = {*BROKER_SETTINGS.by_name, *TOPIC_SETTINGS.by_name}
    assert named - known == set()
    assert len(named) > 10


def test_links_lead_to_a_heading() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^a-z -]", "", each.lower()).replace(" ", "-") for each in headings}
    assert set(re.findall(r"\(#([^)]+)\)", PAGE)) <= anchors
