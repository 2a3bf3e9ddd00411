r"""Escapes and classes, as `\d`, `\p{Alpha}` and `[a-z&&[^b]]`: each is a set of characters."""

from typing import Final

from headrace.spark.patterns.cursor import Cursor
from headrace.spark.patterns.nodes import ALPHABET
from headrace.spark.patterns.properties import DIGITS, NONE, WORD, property_of

_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASSES: Final = {
    "d": DIGITS,
    "D": ALPHABET - DIGITS,
    "w": WORD,
    "W": ALPHABET - WORD,
    **dict.fromkeys("shvR", NONE),  # whitespace and line breaks are in no name
    **dict.fromkeys("SHVX", ALPHABET),
}
_FOLDED: Final = {"\u212a": "k", "\u017f": "s", "\u0131": "i", "\u0130": "i"}  # by the flags i and u together


class ClassParser(Cursor):
    """Parses what matches one character."""

    def _cased(self, character: str) -> frozenset[str]:
        """Return the characters that a literal matches."""
        if not self._flags.any_case:
            return ALPHABET & {character}
        if self._flags.unicode_case:
            character = _FOLDED.get(character, character)
        if not character.isascii():
            return NONE
        return ALPHABET & {character.lower(), character.upper()}

    # -- escapes -------------------------------------------------------------------------------

    def _escaped_set(self) -> frozenset[str]:
        """Return the characters of an escape, which stands for a class or for one character."""
        self._at += 1
        sign = self._take()
        if sign in _CLASSES:
            return _CLASSES[sign]
        if sign in "pP":
            found = self._property()
            return found if sign == "p" else ALPHABET - found
        self._at -= 1
        return self._cased(self._escaped_character())

    def _property(self) -> frozenset[str]:
        name = self._take()
        if name == "{":
            name = self._until("}")
        try:
            return property_of(name, any_case=self._flags.any_case)
        except ValueError as error:
            raise self._wrong(str(error)) from error

    def _escaped_character(self) -> str:
        sign = self._take()
        match sign:
            case _ if sign in _CONTROLS:
                return _CONTROLS[sign]
            case "0":
                return self._octal()
            case "x":
                return self._hexadecimal()
            case "u":
                return chr(self._digits(4))
            case "c":
                return chr(ord(self._take()) ^ 64)
            case _ if sign.isascii() and sign.isalnum():
                raise self._wrong(f"\\{sign} is not an escape of Java, or not supported")
            case _:
                return sign

    def _octal(self) -> str:
        digits = ""
        while len(digits) < 3 and not self._is_end and self._text[self._at] in "01234567":
            if int(digits + self._text[self._at], 8) > 0o377:
                break
            digits += self._take()
        if not digits:
            raise self._wrong(r"expected octal digits after \0")
        return chr(int(digits, 8))

    def _hexadecimal(self) -> str:
        if not self._starts("{"):
            return chr(self._digits(2))
        self._at += 1
        digits = self._until("}")
        try:
            return chr(int(digits, 16))
        except (ValueError, OverflowError):
            raise self._wrong(f"{digits!r} is not a code point") from None

    def _digits(self, count: int) -> int:
        digits = self._text[self._at : self._at + count]
        if len(digits) < count or not all(each in "0123456789abcdefABCDEF" for each in digits):
            raise self._wrong(f"expected {count} hexadecimal digits")
        self._at += count
        return int(digits, 16)

    # -- classes -------------------------------------------------------------------------------

    def _class(self) -> frozenset[str]:
        """Return the characters of `[...]`: unions, intersections (&&), and classes inside of it."""
        self._at += 1
        self._deeper()
        is_negated = self._starts("^")
        self._at += is_negated
        found, union, is_empty = None, NONE, True
        while is_empty or self._peek() != "]":
            if self._is_end:
                raise self._wrong("a class is not closed: ']' is missing")
            if self._starts("&&"):
                if is_empty:
                    raise self._wrong("nothing precedes '&&'")
                self._at += 2
                found, union, is_empty = union if found is None else found & union, NONE, True
                if self._peek() in {"]", "&"}:
                    raise self._wrong("nothing follows '&&'")
                continue
            union |= self._class() if self._peek() == "[" else self._item()
            is_empty = False
        self._at += 1
        self._depth -= 1
        found = union if found is None else found & union
        return ALPHABET - found if is_negated else found

    def _item(self) -> frozenset[str]:
        """Return a character, an escape or a range of a class."""
        if self._peek() == "\\":
            following = self._text[self._at + 1 : self._at + 2]
            if following in _CLASSES or following in {"p", "P"}:
                return self._escaped_set()
        first = self._single()
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in {"]", "[", ""}:
            return self._cased(first)
        self._at += 1
        last = self._single()
        if last < first:
            raise self._wrong(f"the range {first}-{last} is empty")
        return self._range(first, last)

    def _single(self) -> str:
        if self._peek() == "\\":
            self._at += 1
            return self._escaped_character()
        return self._take()

    def _range(self, first: str, last: str) -> frozenset[str]:
        found = frozenset(each for each in ALPHABET if first <= each <= last)
        if self._flags.any_case:
            found |= {each for each in ALPHABET if first <= each.swapcase() <= last}
        return found
