"""What commands share: which cluster they talk to, and how they show a result to people and to machines."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from headrace.cli.texts import INTERRUPTED, ready_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.client.admin.admin import Admin
    from headrace.client.cluster.cluster import Cluster
    from headrace.client.groups.admin import GroupAdmin

BOOTSTRAP: Final = "127.0.0.1:9092"
REGISTRY: Final = "http://127.0.0.1:8080"
UNKNOWN: Final = "-"  # in a table: what is not there, or nobody knows
_UNBOUNDED: Final = 10_000  # columns: for a pipe a line is as long as it is

Command = TypeVar("Command", bound=Callable[..., Any])


class Halfway(click.ClickException):
    """A failure after something was done: `done` says to machines what, the message to people."""

    def __init__(self, message: str, done: Mapping[str, object]) -> None:
        super().__init__(message)
        self.done = done


class Interrupted(Halfway):
    """Ctrl-C, after something was done."""

    exit_code = INTERRUPTED


@dataclass
class Session:
    """One run of a command."""

    named: str | None = None  # where the cluster is, if somebody has said so
    as_json: bool = False
    registry: str = REGISTRY

    @property
    def bootstrap(self) -> str:
        return self.named or BOOTSTRAP

    def look_around(self) -> None:
        """Take the cluster that the environment names, unless an option has named one."""
        self.named = self.named or os.environ.get("HEADRACE_BOOTSTRAP") or None

    @cached_property
    def admin(self) -> "Admin":
        from headrace.client.admin.admin import Admin  # noqa: PLC0415  many commands do without

        return Admin(self.bootstrap)

    @cached_property
    def groups(self) -> "GroupAdmin":
        from headrace.client.groups.admin import GroupAdmin  # noqa: PLC0415
        from headrace.client.wire.brokers import Brokers  # noqa: PLC0415

        return GroupAdmin(Brokers(self.bootstrap))

    @cached_property
    def cluster(self) -> "Cluster":
        from headrace.client.cluster.cluster import Cluster  # noqa: PLC0415

        return Cluster(self.bootstrap)

    def show(self, result: object, text: "str | Callable[[], RenderableType]") -> None:
        """Print `result` as JSON if a machine reads, otherwise `text`: a sentence, or what rich can draw."""
        if self.as_json:
            click.echo(json.dumps(result, default=_plain, ensure_ascii=False))
        elif isinstance(text, str):
            click.echo(text)
        else:
            _draw(text())

    def ready(self, **where: str) -> None:
        """Say that a server serves, once, and where: `ready zookeeper=HOST:PORT`."""
        click.echo(ready_line(where, as_json=self.as_json))
        sys.stdout.flush()


def into_session(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    """What an option says becomes the session's `name`."""

    def remember(context: click.Context, _parameter: click.Parameter, value: object) -> None:
        if value:
            setattr(context.ensure_object(Session), name, value)

    return remember


as_json_option = click.option(
    "--json",
    is_flag=True,
    expose_value=False,
    callback=into_session("as_json"),
    help="Print JSON, for machines.",
)


def options(command: Command) -> Command:
    """Give a command --bootstrap and --json, which may also stand before its name."""
    bootstrap = click.option(
        "--bootstrap",
        metavar="HOST:PORT,...",
        expose_value=False,
        callback=into_session("named"),
        help=f"Where the cluster is; else HEADRACE_BOOTSTRAP, else {BOOTSTRAP}.",
    )
    return bootstrap(as_json_option(command))


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> "RenderableType":
    """Rows under headings; numbers to the right, nothing cut off where it is not a terminal that reads."""
    from rich.console import Group  # noqa: PLC0415  slow to import, and not for machines
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    cells = [[_cell(value) for value in row] for row in rows]
    drawn = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, column in enumerate(columns):
        known = [row[number] for row in cells if row[number] not in {"", UNKNOWN}]
        numeric = bool(cells) and all(cell.lstrip("-").isdigit() for cell in known)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*(Text(cell) for cell in row))
    return drawn if title is None else Group(Text(title, style="bold"), Text(), drawn)


def grouped(rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
    """The rows; a terminal is spared a first cell that is the same as the one above."""
    above: object = None
    for row in rows:
        yield (None, *row[1:]) if row[0] == above and sys.stdout.isatty() else row
        above = row[0]


def together(parts: Iterable["RenderableType"]) -> "RenderableType":
    """One under the other, with an empty line between."""
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn: list[RenderableType] = []
    for part in parts:
        drawn += [Text(), Text(part) if isinstance(part, str) else part]
    return Group(*drawn[1:])


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return "" if value is None else str(value)


def _draw(what: "RenderableType") -> None:
    from rich.console import Console  # noqa: PLC0415

    if sys.stdout.isatty():
        Console().print(what)
        return
    drawn = StringIO()
    Console(file=drawn, width=_UNBOUNDED).print(what)
    for line in drawn.getvalue().splitlines():
        click.echo(line.rstrip())


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
