"""How results look: JSON for programs, tables and sentences for people, a progress bar on a terminal."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from io import StringIO
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import click

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import ProgressColumn

Drawable: TypeAlias = "RenderableType"  # a table, or text; rich is slow to import
UNKNOWN: Final = "-"  # the cell of a value that does not exist or is not known
_UNBOUNDED: Final = 10_000  # columns: lines that are not for a terminal are never wrapped


def count(number: int, noun: str) -> str:
    """Return `1 record`, `2 records`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def size(number: float) -> str:
    """Return `812 B`, `4.2 KiB`, `1.0 GiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(number) < 1024:
            return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"


def to_json(result: object) -> str:
    """Return `result` as one line of JSON; a dataclass becomes an object."""
    return json.dumps(result, default=_plain, ensure_ascii=False)


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> Drawable:
    """Return rows under headings: columns of numbers are aligned right, None is shown as `-`."""
    from rich.console import Group  # noqa: PLC0415  slow to import, and --json does without
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


def _cell(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return UNKNOWN if value is None else str(value)


def grouped(rows: Iterable[Sequence[object]]) -> Iterator[Sequence[object]]:
    """Yield the rows; on a terminal, a first cell that repeats the one above is left empty."""
    above: object = None
    for row in rows:
        yield ("", *row[1:]) if row[0] == above and sys.stdout.isatty() else row
        above = row[0]


def together(parts: Iterable[Drawable]) -> Drawable:
    """Return the parts one below the other, with an empty line between them."""
    from rich.console import Group  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    drawn: list[Drawable] = []
    for part in parts:
        drawn += [Text(), Text(part) if isinstance(part, str) else part]
    return Group(*drawn[1:])


def draw(what: Drawable) -> None:
    """Print a table or text; where stdout is not a terminal, lines are neither wrapped nor padded."""
    from rich.console import Console  # noqa: PLC0415

    if sys.stdout.isatty():
        Console().print(what)
        return
    drawn = StringIO()
    Console(file=drawn, width=_UNBOUNDED).print(what)
    for line in drawn.getvalue().splitlines():
        click.echo(line.rstrip())


class Advance(Protocol):
    """Moves a progress bar on by `done`, and may change its label."""

    def __call__(self, done: float, label: str | None = None, /) -> None: ...


@contextmanager
def bar(label: str, total: float, *, unit: str = "") -> Iterator[Advance]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal; yield what moves it.

    The bar disappears when the block ends, so that only the result stays on the screen.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _label=None: None
        return
    from rich.console import Console  # noqa: PLC0415  slow to import, and for terminals only
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = [TextColumn("{task.description}"), BarColumn(), *_figures(unit), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(label, total=total)
        yield lambda done, label=None: drawn.update(task, advance=done, description=label)


def _figures(unit: str) -> "list[ProgressColumn]":
    from rich.progress import DownloadColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn  # noqa: PLC0415

    if unit == "bytes":
        return [DownloadColumn(binary_units=True)]
    return [MofNCompleteColumn(), TextColumn(unit)] if unit else [TaskProgressColumn()]
