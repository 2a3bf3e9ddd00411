"""What differs between two schemas, line by line. Pure."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

CONTEXT: Final = 3  # lines that are shown around a difference
LONGEST: Final = 5000  # lines that are compared


@dataclass(frozen=True, slots=True)
class Line:
    """A line of both (""), of the new one (plus), of the old one (minus), or of lines that are left out."""

    kind: str
    text: str


def readable(text: str) -> str:
    """JSON with a line for each thing in it; whatever else it is, as it is."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def differences(old: str, new: str) -> list[Line]:
    """The lines of both, with long stretches that are the same left out."""
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
    yield Line("skipped", f"{left_out:,} lines are the same")
    yield from (Line("", each) for each in lines[len(lines) - tail :])
