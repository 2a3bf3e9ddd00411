"""A command group that imports a command only when it runs, so that `headrace --help` is fast."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Final, NamedTuple, NoReturn

import click
from click.shell_completion import CompletionItem

from headrace.system.extras import Extra, MissingExtra, is_installed

COMMANDS: Final = "Commands"


class Lazy(NamedTuple):
    """Where a command is defined, its line in the list of commands, the heading of that list, its extra."""

    module: str
    attribute: str
    help: str
    section: str = COMMANDS
    needs: Extra | None = None


class LazyGroup(click.Group):
    """A group with a table of commands that are imported on use, besides commands added as usual.

    `--help` of the group imports none of the table's commands. The line of a command that was added as usual
    is the first line of its help, without the example after the colon.
    """

    def __init__(self, *args: object, table: Mapping[str, Lazy] | None = None, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self._table = table or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted([*super().list_commands(ctx), *self._table])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        lazy = self._table.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        if lazy.needs is not None and not is_installed(lazy.needs):
            missing = MissingExtra(f"{ctx.command_path} {cmd_name}", lazy.needs)
            return _unavailable(cmd_name, lazy.help, missing)
        command = getattr(import_module(lazy.module), lazy.attribute)
        assert isinstance(command, click.Command), lazy
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is named; UsageError with the most similar names if there is none."""
        name = args[0]
        if not ctx.resilient_parsing and not name.startswith("-") and self.get_command(ctx, name) is None:
            similar = get_close_matches(name, self.list_commands(ctx), n=2)
            meant = f" Did you mean {' or '.join(similar)}?" if similar else ""
            raise click.UsageError(f"No such command '{name}'.{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {lazy.section: [] for lazy in self._table.values()}
        widest = max(map(len, self.list_commands(ctx)))
        for name, text in self._lines(ctx):
            section = self._table[name].section if name in self._table else COMMANDS
            sections.setdefault(section, []).append((name.ljust(widest), text))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the names of commands from the table, without an import: the user waits for Tab."""
        named = [
            CompletionItem(name, help=text) for name, text in self._lines(ctx) if name.startswith(incomplete)
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]

    def _lines(self, ctx: click.Context) -> Iterator[tuple[str, str]]:
        for name in self.list_commands(ctx):
            if name in self._table:
                yield name, self._table[name].help
            else:
                yield name, f"{(self.commands[name].help or '').partition(':  ')[0].rstrip('.')}."


def _unavailable(name: str, line: str, missing: MissingExtra) -> click.Command:
    """Return a command that takes any arguments, and reports what is not installed; its --help does, too."""

    def fail(arguments: tuple[str, ...]) -> NoReturn:  # noqa: ARG001
        raise missing

    return click.Command(
        name,
        callback=fail,
        params=[click.Argument(["arguments"], nargs=-1, type=click.UNPROCESSED)],
        help=f"{line}\n\n{missing}",
        context_settings={"ignore_unknown_options": True},
    )
