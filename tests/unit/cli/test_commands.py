"""Rules for all commands: help, short options, the options of a cluster, and confirmation."""

import re
from collections.abc import Iterator

import click
import pytest

from headrace.cli.main import commands

WITHOUT_A_CLUSTER = {
    "broker",
    "certs",
    "completion",
    "coordinator",
    "demo",
    "log",
    "profile",
    "sql",
    "table",
    "up",
    "zookeeper",
}
DELETING = {"delete", "delete-offsets", "delete-records", "remove", "unregister"}
DESTRUCTIVE = DELETING | {"abort", "replay", "reset", "unsecure"}
TWO_MEANINGS = {
    "-n": {"--limit", "--max-messages"},
    "-o": {"--from", "--output"},
    "-p": {"--partition", "--partitions"},
}


def every_command(
    group: click.Group = commands, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group, info_name="headrace")
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


ALL = dict(every_command())


def options_of(command: click.Command) -> list[click.Option]:
    return [each for each in command.params if isinstance(each, click.Option)]


@pytest.mark.parametrize("path", ALL)
def test_a_command_has_both_spellings_of_help_and_no_option_twice(path: str) -> None:
    parent = click.Context(commands, info_name="headrace", **commands.context_settings)
    context = click.Context(ALL[path], info_name=path, parent=parent, **ALL[path].context_settings)
    names = [name for each in ALL[path].get_params(context) for name in (*each.opts, *each.secondary_opts)]

    assert {"-h", "--help"} <= set(names)
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("path", ALL)
def test_the_examples_of_a_command_are_printed_one_on_a_line(path: str) -> None:
    shown = ALL[path].get_help(click.Context(ALL[path], info_name=path, **ALL[path].context_settings))

    assert "\b" not in shown
    assert "\\b" not in shown  # the mark that keeps lines apart, in a raw docstring
    assert not re.search(r"headrace .*   headrace ", shown)


def test_a_short_option_means_the_same_in_every_command() -> None:
    meanings: dict[str, set[str]] = {}
    for command in ALL.values():
        for option in options_of(command):
            for short in (name for name in option.opts if len(name) == 2):
                meanings.setdefault(short, set()).add(next(name for name in option.opts if len(name) > 2))

    several = {short: names for short, names in meanings.items() if len(names) > 1}
    assert several == TWO_MEANINGS
    assert {"-b", "-F", "-P", "-J", "-y", "-f", "-k", "-n", "-o"} <= set(meanings)


@pytest.mark.parametrize(
    "path",
    [
        path
        for path, command in ALL.items()
        if path.split()[0] not in WITHOUT_A_CLUSTER
        and not (isinstance(command, click.Group) and not command.invoke_without_command)
    ],
)
def test_a_command_of_a_cluster_can_connect_to_a_secured_one(path: str) -> None:
    names = {name for each in options_of(ALL[path]) for name in each.opts}
    assert {"--bootstrap", "--command-config", "--profile", "--json"} <= names


@pytest.mark.parametrize("path", [path for path in ALL if path.split()[-1] in DESTRUCTIVE])
def test_a_command_that_deletes_can_do_without_a_terminal_only_by_an_option(path: str) -> None:
    assert "--yes" in {name for each in options_of(ALL[path]) for name in each.opts}


@pytest.mark.parametrize(
    ("given", "meant"),
    [("topcis", "topic"), ("prodcue", "produce"), ("profil", "profile"), ("consmue", "consume")],
)
def test_a_mistyped_command_is_recognised_without_its_import(given: str, meant: str) -> None:
    with pytest.raises(click.UsageError, match=f"Did you mean {meant}"):
        commands.main([given], standalone_mode=False)
    with pytest.raises(click.UsageError, match=r"No such command 'xyzzy'\.$"):
        commands.main(["xyzzy"], standalone_mode=False)


def test_a_mistyped_option_is_recognised() -> None:
    with pytest.raises(click.NoSuchOption) as refused:
        commands.main(["topic", "list", "--bootstrp", "x:1"], standalone_mode=False)
    assert "--bootstrap" in (refused.value.possibilities or ())
