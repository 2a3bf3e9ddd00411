"""The syntax of java.util.regex.Pattern.

What Java refuses is refused. Flags are resolved here: case-insensitive letters become sets of characters, and
the flags about line ends (d, m, s) and Unicode (u, U) do not matter for the names of topics.
"""

from typing import Final

from headrace.spark.patterns.classes import ClassParser
from headrace.spark.patterns.cursor import InvalidPattern
from headrace.spark.patterns.nodes import (
    ALPHABET,
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
    longest,
)
from headrace.spark.patterns.properties import DIGITS, NONE

MAX_CHARS: Final = 10_000
MAX_REPEAT: Final = 2**31 - 1
_EMPTY: Final = Sequence(())
_NEVER: Final = Chars(NONE)
_ANY: Final = Chars(ALPHABET)
_FLAGS: Final = frozenset("idmsuxU")
_ANCHORS: Final[dict[str, Node]] = {
    "A": Anchor.START,
    "G": Anchor.START,  # the end of the previous match, and there is none
    "Z": Anchor.END,
    "z": Anchor.END,
    "b": Anchor.WORD,
    "B": Anchor.NOT_WORD,
}
_QUANTIFIERS: Final = {"?": (0, 1), "*": (0, None), "+": (1, None)}
_LOOKS: Final = {"=": (False, False), "!": (False, True), "<=": (True, False), "<!": (True, True)}


def parse_pattern(text: str) -> Node:
    """Return the parts of a regular expression; InvalidPattern says what is wrong with it, and where."""
    if len(text) > MAX_CHARS:
        raise InvalidPattern(f"it has {len(text)} characters; at most {MAX_CHARS} are supported")
    return _Parser(text).whole()


class _Parser(ClassParser):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._groups = 0
        self._open: set[int] = set()
        self._names: dict[str, int] = {}

    def whole(self) -> Node:
        found = self._choice()
        if self._at < len(self._text):
            raise self._wrong("unmatched ')'")
        return found

    # -- alternatives and sequences ------------------------------------------------------------

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in {"|", ")"} and not self._is_end:
            part = self._part()
            if part is not None:
                parts.append(self._quantified(part))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _part(self) -> Node | None:
        match self._peek():
            case "(":
                return self._group()
            case "[":
                return Chars(self._class())
            case "\\":
                return self._escape()
            case "^" | "$" as found:
                self._at += 1
                return Anchor.START if found == "^" else Anchor.END
            case ".":
                self._at += 1
                return _ANY
            case "?" | "*" | "+" | "{" as found:
                raise self._wrong(f"nothing precedes {found!r}")
            case _:
                return Chars(self._cased(self._take()))

    # -- quantifiers ---------------------------------------------------------------------------

    def _quantified(self, part: Node) -> Node:
        sign = self._peek()
        if sign in _QUANTIFIERS:
            self._at += 1
            least, most = _QUANTIFIERS[sign]
        elif sign == "{":
            least, most = self._counts()
        else:
            return part
        mode = {"?": Mode.LAZY, "+": Mode.POSSESSIVE}.get(self._peek(), Mode.GREEDY)
        if mode is not Mode.GREEDY:
            self._at += 1
        if self._peek() in {*_QUANTIFIERS, "{"}:
            raise self._wrong(f"{self._peek()!r} follows another quantifier")
        return Repeat(part, least, most, mode)

    def _counts(self) -> tuple[int, int | None]:
        self._at += 1
        first, comma, second = self._until("}").partition(",")
        if not all(each.isascii() and each.isdigit() for each in (first, second or "0")):
            raise self._wrong("expected {n}, {n,} or {n,m}")
        least = int(first)
        most = least if not comma else int(second) if second else None
        if least > MAX_REPEAT or (most is not None and not least <= most <= MAX_REPEAT):
            raise self._wrong("the counts of a quantifier are not in order")
        return least, most

    # -- groups --------------------------------------------------------------------------------

    def _group(self) -> Node | None:
        self._at += 1
        if not self._starts("?"):
            return self._capture(None)
        self._at += 1
        for sign in ("<=", "<!", "=", "!"):
            if self._starts(sign):
                self._at += len(sign)
                behind, negative = _LOOKS[sign]
                body = self._inside()
                if behind and longest(body) is None:
                    raise self._wrong("a lookbehind needs a maximum length: use {0,100} instead of *")
                return Look(body, behind, negative)
        match self._take():
            case ":":
                return self._inside()
            case ">":
                return Atomic(self._inside())
            case "<":
                return self._capture(self._name())
            case _:
                self._at -= 1
                return self._flagged()

    def _name(self) -> str:
        name = self._until(">")
        if not (name.isascii() and name.isalnum() and name[0].isalpha()):
            raise self._wrong(f"{name!r} is not the name of a group: expected letters and digits")
        return name

    def _capture(self, name: str | None) -> Node:
        self._groups += 1
        number = self._groups
        if name is not None:
            if name in self._names:
                raise self._wrong(f"group {name!r} exists already")
            self._names[name] = number
        self._open.add(number)
        body = self._inside()
        self._open.discard(number)
        return Group(number, body)

    def _inside(self) -> Node:
        """Return what is inside a group; flags that are set in it end with it."""
        flags = self._flags
        self._deeper()
        found = self._choice()
        self._depth -= 1
        self._flags = flags
        if self._peek() != ")":
            raise self._wrong("a group is not closed: ')' is missing")
        self._at += 1
        return found

    def _flagged(self) -> Node | None:
        """Return the group `(?i-x:...)`, or None for `(?i-x)`, whose flags hold to the end of its group."""
        before, is_set = self._flags, True
        while (sign := self._take()) not in {")", ":"}:
            if sign == "-" and is_set:
                is_set = False
            elif sign in _FLAGS:
                self._flags = self._flags.changed(sign, is_set=is_set)
            else:
                raise self._wrong(f"(?{sign} is not a group of Java")
        if sign == ")":
            return None
        found = self._inside()
        self._flags = before
        return found

    # -- escapes -------------------------------------------------------------------------------

    def _escape(self) -> Node:
        sign = self._text[self._at + 1 : self._at + 2]
        if sign in _ANCHORS:
            self._at += 2
            if sign == "b" and self._starts("{g}"):
                self._at += 3
                return _EMPTY  # graphemes: a boundary is between any two ASCII characters
            return _ANCHORS[sign]
        if sign in set("123456789"):
            self._at += 1
            return self._reference()
        if sign == "k":
            return self._named_reference()
        return Chars(self._escaped_set())

    def _reference(self) -> Node:
        number = int(self._take())
        while not self._is_end and self._text[self._at] in DIGITS:
            longer = number * 10 + int(self._text[self._at])
            if longer > self._groups:
                break
            number, self._at = longer, self._at + 1
        return self._to_group(number)

    def _named_reference(self) -> Node:
        self._at += 2
        if self._take() != "<":
            raise self._wrong(r"expected \k<name>")
        name = self._until(">")
        if name not in self._names:
            raise self._wrong(f"there is no group {name!r} before this")
        return self._to_group(self._names[name])

    def _to_group(self, number: int) -> Node:
        if number in self._open:
            raise self._wrong(f"a reference to group {number} inside of that group is not supported")
        if number > self._groups:
            return _NEVER
        return Reference(number, self._flags.any_case)
