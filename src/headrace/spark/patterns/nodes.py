"""The parts of a regular expression, and its text for RE2.

A topic's name has only ASCII letters, digits, '.', '_' and '-', so a part that matches one character is the
set of those it matches: classes, properties and cases need no other form.
"""

import string
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final, TypeAlias

ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "._-")


class Mode(Enum):
    GREEDY = auto()
    LAZY = auto()
    POSSESSIVE = auto()


class Anchor(Enum):
    START = r"\A"
    END = r"\z"
    WORD = r"\b"
    NOT_WORD = r"\B"


@dataclass(frozen=True, slots=True)
class Chars:
    """One character of a set."""

    of: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Choice:
    options: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Repeat:
    body: "Node"
    least: int
    most: int | None
    mode: Mode


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group."""

    number: int
    body: "Node"


@dataclass(frozen=True, slots=True)
class Atomic:
    """A group that does not backtrack once it has matched."""

    body: "Node"


@dataclass(frozen=True, slots=True)
class Look:
    """A lookahead or lookbehind."""

    body: "Node"
    behind: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class Reference:
    """A backreference; a group that does not exist never matches."""

    number: int
    any_case: bool


Node: TypeAlias = Chars | Sequence | Choice | Repeat | Group | Atomic | Look | Reference | Anchor


def re2_text(node: Node) -> str | None:
    """Return the expression for RE2, or None if it has parts that RE2 does not support.

    RE2 is asked only whether a whole name matches, so groups need not capture, and lazy is as good as greedy.
    """
    match node:
        case Chars(of):
            return _class(of)
        case Anchor():
            return node.value
        case Sequence(parts):
            return _joined(parts, "")
        case Choice(options):
            return _joined(options, "|")
        case Group(_, body):
            return re2_text(body)
        case Repeat(body, least, most, mode) if mode is not Mode.POSSESSIVE:
            inner = re2_text(body)
            return None if inner is None else f"(?:{inner}){{{least},{'' if most is None else most}}}"
        case _:
            return None


def _class(of: frozenset[str]) -> str:
    """Return a class of RE2; of no characters, one that never matches."""
    return "[" + "".join(rf"\x{ord(each):02x}" for each in sorted(of)) + "]" if of else r"[^\x00-\x{10FFFF}]"


def _joined(nodes: tuple[Node, ...], between: str) -> str | None:
    texts = [re2_text(each) for each in nodes]
    known = [each for each in texts if each is not None]
    return f"(?:{between.join(known)})" if len(known) == len(texts) else None


def longest(node: Node) -> int | None:
    """Return the length of the longest text that a part can match; None if there is no limit."""
    match node:
        case Chars():
            return 1
        case Anchor() | Look():
            return 0
        case Group(_, body) | Atomic(body):
            return longest(body)
        case Repeat(body, _, most, _):
            each = longest(body)
            return 0 if each == 0 else None if each is None or most is None else each * most
        case Sequence(parts):
            lengths = [longest(each) for each in parts]
            return None if None in lengths else sum(each or 0 for each in lengths)
        case Choice(options):
            lengths = [longest(each) for each in options]
            return None if None in lengths else max(each or 0 for each in lengths)
        case Reference():
            return None
