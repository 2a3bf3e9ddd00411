"""Tables as lines of text, for a terminal of some width or for a pipe. Pure."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import click

UNKNOWN: Final = "-"  # the cell of a value that does not exist or is not known
_GAP: Final = "  "
_LEAST_WIDTH: Final = 4  # of a column that has to be narrower than its cells


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings; columns of numbers are aligned right."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str | None = None

    def lines(self, width: int | None, *, styled: bool = False) -> Iterator[str]:
        """Yield its lines; with `width`, cells of the widest columns are folded to fit."""
        if self.title is not None:
            yield _bold(self.title, styled=styled)
            yield ""
        rows = [list(map(_printable, row)) for row in (self.columns, *self.rows)]
        widths, right = [], []
        for header, *cells in zip(*rows, strict=True):
            widths.append(max(text_width(line) for cell in (header, *cells) for line in cell.split("\n")))
            known = [cell for cell in cells if cell not in {"", UNKNOWN}]
            right.append(bool(cells) and all(cell.lstrip("-").isdigit() for cell in known))
        if width is not None:
            widths = fitted(widths, width - len(_GAP) * (len(widths) - 1))
        for number, row in enumerate(rows):
            for line in _row(row, widths, right):
                yield _bold(line, styled=styled and number == 0)


def fitted(widths: Sequence[int], available: int) -> list[int]:
    """Return the widths, the largest of them cut to one limit, so that their sum is at most `available`."""
    limit = max(widths, default=0)
    while limit > _LEAST_WIDTH and sum(min(width, limit) for width in widths) > available:
        limit -= 1
    return [min(width, limit) for width in widths]


def text_width(text: str) -> int:
    """Return how many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:  # drawn over the character before it
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> Iterator[str]:
    """Yield the lines of a row: as many as its highest cell has."""
    drawn = [list(folded(cell, width)) for cell, width in zip(cells, widths, strict=True)]
    for number in range(max(map(len, drawn))):
        parts = []
        for lines, width, at_right in zip(drawn, widths, right, strict=True):
            text = lines[number] if number < len(lines) else ""
            padding = " " * (width - text_width(text))
            parts.append(padding + text if at_right else text + padding)
        yield _GAP.join(parts).rstrip()


def folded(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a text; those that are too wide are cut after a word, or within a very long one."""
    for line in text.split("\n"):
        rest = line
        while text_width(rest) > width:
            end = _length_within(rest, width)
            space = rest.rfind(" ", 0, end + 1)
            end = space if space > 0 else end
            yield rest[:end].rstrip()
            rest = rest[end:].lstrip()
        yield rest


def _length_within(text: str, width: int) -> int:
    """Return how many characters fit into `width` columns, at least one."""
    used = 0
    for number, character in enumerate(text):
        used += _character_width(character)
        if used > width:
            return max(number, 1)
    return len(text)


def _printable(text: str) -> str:
    """Return the text with control characters escaped: a terminal would obey those of a stranger's record."""
    if text.isprintable():
        return text
    return "".join(
        each if each == "\n" or unicodedata.category(each) != "Cc" else f"\\x{ord(each):02x}"
        for each in text.expandtabs()
    )


def _bold(text: str, *, styled: bool) -> str:
    return click.style(text, bold=True) if styled and text else text
