"""The differences of two schemas, line by line. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

CONTEXT: Final = 3  # unchanged lines around a difference
LONGEST: Final = 5000  # most lines that are compared


@dataclass(frozen=True, slots=True)
class Line:
    """A line that is in both schemas (""), only in the new (plus) or old one (minus), or a gap (skipped)."""

    kind: str
    text: str


def readable(text: str) -> str:
    """Return JSON indented, and other text as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def differences(old: str, new: str) -> list[Line]:
    """Return the lines of both texts, without long unchanged parts."""
    before, after = old.splitlines()[:LONGEST], new.splitlines()[:LONGEST]
    found: list[Line] = []
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    for at, (kind, first, last, start, end) in enumerate(blocks):
        if kind == "equal":
            found += _same(before[first:last], is_first=at == 0, is_last=at == len(blocks) - 1)
        else:
            found += [Line("minus", each) for each in before[first:last]]
            found += [Line("plus", each) for each in after[start:end]]
    return found


def _same(lines: list[str], *, is_first: bool, is_last: bool) -> Iterator[Line]:
    head = 0 if is_first else CONTEXT
    tail = 0 if is_last else CONTEXT
    left_out = len(lines) - head - tail
    if left_out <= CONTEXT:
        yield from (Line("", each) for each in lines)
        return
    yield from (Line("", each) for each in lines[:head])
    yield Line("skipped", f"{left_out:,} unchanged lines")
    yield from (Line("", each) for each in lines[len(lines) - tail :])
