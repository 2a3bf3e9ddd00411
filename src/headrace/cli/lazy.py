"""A command group that imports a command only when it runs: `headrace --help` needs none of them."""

from importlib import import_module
from typing import NamedTuple

import click


class Lazy(NamedTuple):
    """Where a command is, and the line about it in the list of commands."""

    module: str
    attribute: str
    help: str


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
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._table[name].help) for name in self.list_commands(ctx)])
