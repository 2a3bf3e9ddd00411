"""The blocks of a Markdown page, and the comments that say how to run them.

A comment stands before its block, and no reader of the page sees it:

    <!-- not run: it needs three machines -->
    <!-- needs Spark -->
    <!-- before: headrace up --data /tmp/headrace -->  commands and servers that the page does not show
    <!-- read: one.example.com as 127.0.0.1 -->        in this block and in what it prints
    <!-- file: shop.py -->                             the block is this file, and is not run by itself
    <!-- prints: ... -->                               what the block prints, if the page does not show it
    <!-- prints in any order: ... -->
    <!-- in any order -->                              of the output on the page
    <!-- numbers differ -->                            so do ids, and the width of columns
    <!-- fails -->                                     the commands of a block with outputs end with a status

A block of `text` is what the block before it prints. A block whose first line begins with `$ ` has commands,
each followed by its output; a command whose output has a line `headrace: ...` fails.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_NOTES: Final = re.compile(
    r"(not run|needs Spark|before|read|file|prints in any order|prints|in any order|numbers differ|fails)"
    r"(?::\s*(.*))?",
    re.DOTALL,
)
_POINT: Final = re.compile(r"(?:\d+\.|-) ")
OUTPUT: Final = "text"
CONSOLE: Final = "console"


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
    before: str = ""  # commands to run before it
    read: tuple[tuple[str, str], ...] = ()  # texts, and what is read in their place
    file: str = ""
    prints: str | None = None
    in_order: bool = True
    numbers_differ: bool = False
    fails: bool = False

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line} ({self.section})"


def blocks(page: str, text: str) -> list[Block]:
    """Return the blocks of a page; BadPage if a comment or an expected output belongs to no block."""
    found: list[Block] = []
    section, notes = "", dict[str, str]()
    for kind, line, content in _pieces(text):
        if kind == "heading":
            _check_used(notes, page, line)
            section = content
        elif kind == "comment":
            note = _NOTES.fullmatch(content)
            if note is not None:  # another comment is not for us
                before = notes.get(note[1])
                notes[note[1]] = note[2] or "" if before is None else f"{before}\n{note[2]}"
        elif kind == OUTPUT and not content.startswith("$ ") and "not run" not in notes:
            last = found[-1] if found else None
            if last is None or last.section != section or last.prints is not None:
                raise BadPage(f"{page}:{line - 1}: no block before this one prints it")
            last.prints = content
            last.in_order = last.in_order and "in any order" not in notes
            last.numbers_differ = last.numbers_differ or "numbers differ" in notes
            notes = {}
        else:
            ordered, unordered = notes.get("prints"), notes.get("prints in any order")
            instead = (each.partition(" as ") for each in notes.get("read", "").splitlines())
            found.append(
                Block(
                    page=page,
                    line=line,
                    section=section,
                    language=CONSOLE if content.startswith("$ ") else kind,
                    text=content,
                    not_run=notes.get("not run", ""),
                    needs_spark="needs Spark" in notes,
                    before=notes.get("before", ""),
                    read=tuple((old, new) for old, _, new in instead),
                    file=notes.get("file", ""),
                    prints=unordered if ordered is None else ordered,
                    in_order=unordered is None and "in any order" not in notes,
                    numbers_differ="numbers differ" in notes,
                    fails="fails" in notes,
                )
            )
            notes = {}
    _check_used(notes, page, text.count("\n"))
    return found


def _pieces(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield headings, comments and code, each with its kind and the number of its first line.

    The kind of code is its language, and sh if it is indented. Below a point of a list, four spaces are a
    paragraph of the point, and eight are code.
    """
    lines = text.split("\n")
    at, is_list, is_new = 0, False, True  # whether a paragraph begins here
    while at < len(lines):
        line = lines[at]
        began, indent = at, len(line) - len(line.lstrip())
        if not line.strip():
            is_new = True
        elif line.lstrip().startswith("<!--"):
            while not lines[at].endswith("-->"):
                at += 1
            content = "\n".join(each.removeprefix(" " * indent) for each in lines[began : at + 1])
            yield "comment", began + 1, content.strip().removeprefix("<!--").removesuffix("-->").strip()
        elif line.lstrip().startswith("```"):
            at += 1
            while lines[at].strip() != "```":
                at += 1
            content = "".join(f"{each[indent:]}\n" for each in lines[began + 1 : at])
            yield line.strip().removeprefix("```"), began + 2, content
        elif is_new and indent >= (8 if is_list else 4):
            while at < len(lines) and (not lines[at].strip() or lines[at].startswith(" " * indent)):
                at += 1
            code = "\n".join(each[indent:] for each in lines[began:at]).strip("\n")
            yield "sh", began + 1, f"{code}\n"
            continue
        else:
            if line.startswith(("## ", "### ")):
                yield "heading", at + 1, line.lstrip("# ")
            if is_new and indent == 0:
                is_list = _POINT.match(line) is not None
            is_new = False
        at += 1


def _check_used(notes: dict[str, str], page: str, line: int) -> None:
    if notes:
        raise BadPage(f"{page}:{line}: no block follows the comment {next(iter(notes))!r}")
