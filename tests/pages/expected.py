"""Compares what a block prints with what its page says. `...` stands for anything."""

import re
from typing import Final

WILDCARD: Final = "..."


def is_expected(printed: str, expected: str, *, in_order: bool = True) -> bool:
    """Return whether the lines are equal; a line of `...` alone stands for any number of lines."""
    said, wanted = printed.rstrip().splitlines(), expected.strip().splitlines()
    if in_order:
        pattern = "".join(
            _any_lines if each.strip() == WILDCARD else f"{_pattern(each)}\n" for each in wanted
        )
        return re.fullmatch(pattern, "".join(f"{each.rstrip()}\n" for each in said)) is not None
    return _is_permuted([each.rstrip() for each in said], [_pattern(each) for each in wanted])


_any_lines: Final = r"(?:.*\n)*?"


def _pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.rstrip().split(WILDCARD)))


def _is_permuted(lines: list[str], patterns: list[str]) -> bool:
    for pattern in patterns:
        found = next((each for each in lines if re.fullmatch(pattern, each)), None)
        if found is None:
            return False
        lines.remove(found)
    return not lines
