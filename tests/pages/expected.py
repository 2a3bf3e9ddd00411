"""Compares what a block prints with what its page says. `...` and `…` stand for anything."""

import re
from typing import Final

_WILDCARD: Final = re.compile(r"\.\.\.|…")
_ANY_LINES: Final = r"(?:.*\n)*?"
_DIFFER: Final = (
    (re.compile(r"\b[\w-]{22}\b"), "ID"),  # of clusters and topics
    (re.compile(r"\d[\d.,:TZ+-]*\d|\d"), "0"),
    (re.compile(r" +"), " "),
    (re.compile(r"-{2,}"), "--"),
)


def is_expected(printed: str, expected: str, *, in_order: bool = True, numbers_differ: bool = False) -> bool:
    """Return whether the lines are equal; a line of `...` alone stands for any number of lines."""
    if numbers_differ:
        for differing, same in _DIFFER:
            printed, expected = differing.sub(same, printed), differing.sub(same, expected)
    said, wanted = printed.rstrip().splitlines(), expected.strip("\n").rstrip().splitlines()
    if in_order:
        pattern = "".join(
            _ANY_LINES if _WILDCARD.fullmatch(each.strip()) else f"{_pattern(each)}\n" for each in wanted
        )
        return re.fullmatch(pattern, "".join(f"{each.rstrip()}\n" for each in said)) is not None
    return _is_permuted([each.rstrip() for each in said], [_pattern(each) for each in wanted])


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, _WILDCARD.split(line.rstrip())))


def _is_permuted(lines: list[str], patterns: list[str]) -> bool:
    more = ".*" in patterns  # a line of `...`
    for pattern in patterns:
        found = next((each for each in lines if re.fullmatch(pattern, each)), None)
        if found is None and pattern != ".*":
            return False
        if found is not None and pattern != ".*":
            lines.remove(found)
    return more or not lines
