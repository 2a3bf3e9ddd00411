"""The blocks of a Markdown page, and the comments that say how to run them.

A comment stands before its block, and no reader of the page sees it:

    <!-- not run: it needs three machines -->
    <!-- needs Spark -->
    <!-- before: headrace up --data /tmp/headrace -->
    <!-- prints: ... -->                               what the block prints, if the page does not show it
    <!-- prints in any order: ... -->

A block of `text` is what the block before it prints.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_PIECES: Final = re.compile(
    r"""^\#\#+[ ](?P<heading>[^\n]*)$
      | ^<!--\s*(?P<comment>.*?)\s*-->$
      | ^```(?P<language>\w*)\n(?P<fenced>.*?)^```$
      | (?<=\n\n)(?P<indented>(?:[ ]{4}[^\n]+\n)+)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_COMMENT: Final = re.compile(
    r"(not run|needs Spark|before|prints in any order|prints)(?::\s*(.*))?", re.DOTALL
)


class BadPage(Exception):
    """A page whose comments cannot be understood."""


@dataclass(slots=True, kw_only=True)
class Block:
    """A piece of code on a page."""

    page: str
    line: int  # of its first line of code
    section: str
    language: str  # sh for indented code
    text: str
    not_run: str = ""  # the reason
    needs_spark: bool = False
    before: str = ""  # a command to run before it
    prints: str | None = None
    in_order: bool = True

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line} ({self.section})"


def blocks(page: str, text: str) -> list[Block]:
    """Return the blocks of a page; BadPage if a comment or an expected output belongs to no block."""
    found: list[Block] = []
    section, notes = "", dict[str, str]()
    for piece in _PIECES.finditer(text):
        line = text.count("\n", 0, piece.start()) + 1
        if piece["heading"]:
            _check_used(notes, page, line)
            section = piece["heading"]
        elif piece["comment"]:
            notes |= _notes(piece["comment"])
        elif piece["language"] == "text" and "not run" not in notes:
            _expect(found, piece["fenced"], section, f"{page}:{line}")
        else:
            found.append(_block(piece, page, line, section, notes))
            notes = {}
    _check_used(notes, page, text.count("\n"))
    return found


def _notes(comment: str) -> Iterator[tuple[str, str]]:
    note = _COMMENT.fullmatch(comment)
    if note is not None:  # another comment is not for us
        yield note[1], note[2] or ""


def _block(piece: re.Match[str], page: str, line: int, section: str, notes: dict[str, str]) -> Block:
    indented = piece["indented"]
    ordered, unordered = notes.get("prints"), notes.get("prints in any order")
    return Block(
        page=page,
        line=line if indented else line + 1,
        section=section,
        language="sh" if indented else piece["language"],
        text=re.sub("^ {4}", "", indented, flags=re.MULTILINE) if indented else piece["fenced"],
        not_run=notes.get("not run", ""),
        needs_spark="needs Spark" in notes,
        before=notes.get("before", ""),
        prints=unordered if ordered is None else ordered,
        in_order=unordered is None,
    )


def _expect(found: list[Block], output: str, section: str, place: str) -> None:
    if not found or found[-1].section != section or found[-1].prints is not None:
        raise BadPage(f"{place}: no block before this one prints it")
    found[-1].prints = output


def _check_used(notes: dict[str, str], page: str, line: int) -> None:
    if notes:
        raise BadPage(f"{page}:{line}: no block follows the comment {next(iter(notes))!r}")
