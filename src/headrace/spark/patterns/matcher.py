"""Matching by backtracking, as Java does it, for expressions that RE2 does not support.

The number of steps is limited: an expression such as `(a+)+(?=b)` could take years on a long name.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from headrace.spark.patterns.nodes import (
    Anchor,
    Atomic,
    Chars,
    Choice,
    Group,
    Look,
    Mode,
    Node,
    Reference,
    Repeat,
    Sequence,
)

MAX_STEPS: Final = 200_000  # about a tenth of a second


class TooManySteps(Exception):
    """The expression cannot be matched with this text in MAX_STEPS."""


def matches(root: Node, text: str) -> bool:
    """Whether the whole text matches; TooManySteps if that takes too long."""
    matcher = _Matcher(text)
    return any(end == len(text) for end in matcher.ends(root, 0))


class _Matcher:
    """Yields where a part can end if it begins at a position, in the order in which Java tries."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._captured: dict[int, tuple[int, int]] = {}
        self._steps = 0
        self._ways: dict[type[Node], Callable[[Any, int], Iterator[int]]] = {
            Chars: self._character,
            Anchor: self._anchored,
            Sequence: self._in_order,
            Choice: self._chosen,
            Repeat: self._repeated,
            Group: self._capture,
            Atomic: lambda node, at: self._first_alone(node.body, at),
            Look: self._look,
            Reference: self._again,
        }

    def ends(self, node: Node, at: int) -> Iterator[int]:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise TooManySteps
        return self._ways[type(node)](node, at)

    def _character(self, node: Chars, at: int) -> Iterator[int]:
        if at < len(self._text) and self._text[at] in node.of:
            yield at + 1

    def _anchored(self, node: Anchor, at: int) -> Iterator[int]:
        if self._holds(node, at):
            yield at

    def _holds(self, anchor: Anchor, at: int) -> bool:
        if anchor is Anchor.START:
            return at == 0
        if anchor is Anchor.END:
            return at == len(self._text)
        is_border = self._is_word(at - 1) != self._is_word(at)
        return is_border == (anchor is Anchor.WORD)

    def _is_word(self, at: int) -> bool:
        return 0 <= at < len(self._text) and self._text[at] not in ".-"

    def _chosen(self, node: Choice, at: int) -> Iterator[int]:
        for each in node.options:
            yield from self.ends(each, at)

    def _in_order(self, node: Sequence, at: int) -> Iterator[int]:
        parts = node.parts
        if not parts:
            yield at
            return
        tried = [self.ends(parts[0], at)]
        while tried:
            end = next(tried[-1], None)
            if end is None:
                tried.pop()
            elif len(tried) == len(parts):
                yield end
            else:
                tried.append(self.ends(parts[len(tried)], end))

    def _repeated(self, node: Repeat, at: int) -> Iterator[int]:
        if node.mode is Mode.POSSESSIVE:
            return self._first_alone(replace(node, mode=Mode.GREEDY), at)
        return self._backtracked(node, at)

    def _backtracked(self, node: Repeat, at: int) -> Iterator[int]:
        """Yield after as many repetitions as possible first; after as few as possible if it is lazy."""
        levels = [(at, self.ends(node.body, at))]  # a level is the position after so many repetitions
        if node.mode is Mode.LAZY and node.least == 0:
            yield at
        while levels:
            start, tried = levels[-1]
            count = len(levels) - 1
            end = next(tried, None) if node.most is None or count < node.most else None
            if end is None:
                levels.pop()
                if node.mode is Mode.GREEDY and count >= node.least:
                    yield start
            elif end == start:  # an empty repetition can be had as often as is needed
                yield end
            else:
                levels.append((end, self.ends(node.body, end)))
                if node.mode is Mode.LAZY and count + 1 >= node.least:
                    yield end

    def _capture(self, node: Group, at: int) -> Iterator[int]:
        before = self._captured.get(node.number)
        for end in self.ends(node.body, at):
            self._captured[node.number] = (at, end)
            yield end
            self._restore(node.number, before)

    def _restore(self, number: int, captured: tuple[int, int] | None) -> None:
        if captured is None:
            self._captured.pop(number, None)
        else:
            self._captured[number] = captured

    def _first_alone(self, body: Node, at: int) -> Iterator[int]:
        before = dict(self._captured)
        end = next(self.ends(body, at), None)
        if end is not None:
            yield end
        self._captured = before

    def _look(self, node: Look, at: int) -> Iterator[int]:
        before = dict(self._captured)
        found = self._seen_behind(node.body, at) if node.behind else self._seen(node.body, at)
        if node.negative:
            self._captured = dict(before)
        if found != node.negative:
            yield at
        self._captured = before

    def _seen(self, body: Node, at: int) -> bool:
        return next(self.ends(body, at), None) is not None

    def _seen_behind(self, body: Node, at: int) -> bool:
        return any(end == at for start in range(at, -1, -1) for end in self.ends(body, start))

    def _again(self, node: Reference, at: int) -> Iterator[int]:
        captured = self._captured.get(node.number)
        if captured is None:
            return
        wanted = self._text[slice(*captured)]
        found = self._text[at : at + len(wanted)]
        if found == wanted or (node.any_case and found.lower() == wanted.lower()):
            yield at + len(wanted)
