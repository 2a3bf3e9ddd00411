"""The whole tree of commands: each can speak to machines, explains itself, and shows an example."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.command import Command
from headrace.cli.main import commands

NOWHERE = "127.0.0.1:1"


def tree() -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what one types."""
    yield from _below(commands, click.Context(commands, info_name="headrace"), ())


def _below(
    command: click.Command, context: click.Context, path: tuple[str, ...]
) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield " ".join(path), command
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, (path, name)
            yield from _below(child, click.Context(child, parent=context, info_name=name), (*path, name))


EVERY = dict(tree())


@pytest.mark.parametrize("path", EVERY)
def test_a_command_speaks_to_machines(path: str) -> None:
    assert any("--json" in parameter.opts for parameter in EVERY[path].params), path


@pytest.mark.parametrize("path", EVERY)
def test_a_command_says_what_it_does_by_an_example_and_explains_its_options(path: str) -> None:
    command = EVERY[path]
    assert command.help, path
    assert f"headrace {path}" in command.help, f"{path} has no example"
    unexplained = [
        parameter.opts[0]
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert not unexplained


def test_every_noun_is_there() -> None:
    nouns = {path.split()[0] for path in EVERY}
    assert {"broker", "topic", "group", "schema", "cluster", "config", "pipeline", "bench", "doctor"} <= nouns


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        ("topic list", 1),
        ("cluster status", 1),
        ("group list", 1),
        ("schema list --registry http://127.0.0.1:1", 1),
        ("schema list --registry nonsense", 1),
        ("config describe broker one", 2),
        ("produce", 2),
        ("log verify", 2),
    ],
)
def test_a_refusal_is_an_object_for_machines(arguments: str, status: int) -> None:
    for order in ([*arguments.split(), "--json"], ["--json", *arguments.split()]):
        refused = Command(NOWHERE)(*order)
        assert (refused.status, refused.out) == (status, b"")
        assert list(json.loads(refused.err)) == ["error"]


def test_damage_in_files_is_told_to_machines_and_people(tmp_path: Path) -> None:
    partition = tmp_path / "orders-0"
    partition.mkdir()
    (partition / f"{0:020d}.log").write_bytes(bytes(61))
    damaged = Command(NOWHERE)("log", "verify", str(partition), "--json")
    assert damaged.status == 1
    assert damaged.json[0]["problems"]
    assert json.loads(damaged.err) == {"error": f"{partition}: 1 problem"}
    read = Command(NOWHERE)("log", "verify", str(partition))
    assert (read.status, read.text.split()[-1]) == (1, "DAMAGED")
    assert read.err.startswith("  ")
