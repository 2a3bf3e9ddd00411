"""Command groups: how they list their commands, and one that imports a command only when it runs."""

from collections.abc import Iterator
from importlib import import_module
from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


class Lazy(NamedTuple):
    """Where a command is, the line about it in the list of commands, and the heading it stands under."""

    module: str
    attribute: str
    help: str
    section: str = "Commands"


class LazyGroup(click.Group):
    """Knows its commands from a table. A command's own `--help` imports it, the list of all does not."""

    def __init__(self, *args: object, table: dict[str, Lazy], **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._table])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._table.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        command = getattr(import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command), lazy
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {lazy.section: [] for lazy in self._table.values()}
        for name in self.list_commands(ctx):
            sections[self._table[name].section].append((name, self._table[name].help))
        widest = max(map(len, self._table))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), text) for name, text in rows])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The names of commands, out of the table; whoever presses Tab waits for no import."""
        named = [
            CompletionItem(name, help=self._table[name].help)
            for name in self.list_commands(ctx)
            if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]


class Noun(click.Group):
    """A few verbs in one file; the list of them has what each does, without its example."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self._verbs(ctx)))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [
            CompletionItem(name, help=text) for name, text in self._verbs(ctx) if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def _verbs(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None, name
            yield name, f"{(command.help or '').partition(':  ')[0].rstrip('.')}."
