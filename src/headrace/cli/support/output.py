"""How results look: JSON for programs, tables and sentences for people, a progress bar on a terminal."""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from typing import Final, Protocol, TypeAlias

import click

from headrace.cli.support.tables import UNKNOWN, Table, folded

__all__ = [
    "UNKNOWN",
    "Advance",
    "Drawable",
    "bar",
    "count",
    "draw",
    "grouped",
    "lines",
    "size",
    "table",
    "to_json",
    "together",
]

_BAR_STEPS: Final = 1000


@dataclass(frozen=True, slots=True)
class Stack:
    """Parts one below the other, with an empty line between them."""

    parts: "Sequence[Drawable]"


Drawable: TypeAlias = str | Table | Stack


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
    return Table(columns, [[_cell(value) for value in row] for row in rows], title)


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
    return Stack(list(parts))


def lines(what: Drawable, width: int | None, *, styled: bool = False) -> Iterator[str]:
    """Yield the lines of tables and texts; with `width`, they are folded to fit it."""
    match what:
        case str():
            yield from what.split("\n") if width is None else folded(what, width)
        case Table():
            yield from what.lines(width, styled=styled)
        case Stack(parts):
            for number, part in enumerate(parts):
                if number:
                    yield ""
                yield from lines(part, width, styled=styled)


def draw(what: Drawable) -> None:
    """Print a table or text; where stdout is not a terminal, lines are not folded."""
    on_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if on_terminal else None
    for line in lines(what, width, styled=on_terminal):
        click.echo(line)


class Advance(Protocol):
    """Moves a progress bar on by `done`, and may change its label."""

    def __call__(self, done: float, label: str | None = None, /) -> None: ...


@contextmanager
def bar(label: str, total: float) -> Iterator[Advance]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal; yield what moves it.

    The bar disappears when the block ends, so that only the result stays on the screen.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _label=None: None
        return
    done = 0.0
    try:
        with click.progressbar(length=_BAR_STEPS, label=label, file=sys.stderr) as shown:

            def advance(more: float, label: str | None = None) -> None:
                nonlocal done
                done += more
                shown.label = label or shown.label
                shown.update(int(_BAR_STEPS * min(done / total, 1.0)) - shown.pos if total else 0)

            yield advance
    finally:
        click.echo("\033[A\r\033[K", nl=False, err=True)  # click has ended the line of the bar
