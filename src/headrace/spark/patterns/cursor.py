"""The text of a regular expression, and a position in it."""

from dataclasses import dataclass, replace
from typing import Final

MAX_DEPTH: Final = 50  # of groups and classes inside each other


class InvalidPattern(ValueError):
    """Not a regular expression of Java, or one that is not supported."""


@dataclass(frozen=True, slots=True)
class Flags:
    any_case: bool = False
    unicode_case: bool = False
    comments: bool = False

    def changed(self, sign: str, *, is_set: bool) -> "Flags":
        """Return the flags after `(?i)` or `(?-i)`; those about line ends do not matter for topics."""
        match sign:
            case "i":
                return replace(self, any_case=is_set)
            case "u" | "U":
                return replace(self, unicode_case=is_set)
            case "x":
                return replace(self, comments=is_set)
            case _:
                return self


class Cursor:
    """Reads characters; white space and comments are skipped with the flag x."""

    def __init__(self, text: str) -> None:
        self._text, self._quoted = _unquoted(text)
        self._at = 0
        self._flags = Flags()
        self._depth = 0

    # -- characters ----------------------------------------------------------------------------

    def _wrong(self, why: str) -> InvalidPattern:
        return InvalidPattern(f"{why}, at character {min(self._at, len(self._text)) + 1}")

    def _skip_comments(self) -> None:
        while self._flags.comments and self._at < len(self._text) and not self._quoted[self._at]:
            if self._text[self._at] in " \t\n\x0b\f\r":
                self._at += 1
            elif self._text[self._at] == "#":
                while self._at < len(self._text) and self._text[self._at] not in "\n\r\x85\u2028\u2029":
                    self._at += 1
            else:
                return

    def _peek(self) -> str:
        r"""Return the next character; "" at the end, and for one that \Q has quoted."""
        self._skip_comments()
        return "" if self._is_end or self._quoted[self._at] else self._text[self._at]

    @property
    def _is_end(self) -> bool:
        return self._at >= len(self._text)

    def _starts(self, text: str) -> bool:
        end = self._at + len(text)
        return self._text[self._at : end] == text and not any(self._quoted[self._at : end])

    def _take(self) -> str:
        if self._is_end:
            raise self._wrong("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _until(self, end: str) -> str:
        stop = self._text.find(end, self._at)
        if stop < 0:
            raise self._wrong(f"{end!r} is missing")
        found, self._at = self._text[self._at : stop], stop + 1
        return found

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._wrong(f"groups inside each other are supported up to a depth of {MAX_DEPTH}")


def _unquoted(text: str) -> tuple[str, list[bool]]:
    r"""Return the text without \Q and \E, and for each character whether these have quoted it."""
    found, quoted, at, is_quoted = "", list[bool](), 0, False
    while at < len(text):
        if text.startswith("\\E", at) and is_quoted:
            is_quoted, at = False, at + 2
        elif text.startswith("\\Q", at) and not is_quoted:
            is_quoted, at = True, at + 2
        elif text[at] == "\\" and not is_quoted:
            found += text[at : at + 2]
            quoted += [False] * len(text[at : at + 2])
            at += 2
        else:
            found += text[at]
            quoted.append(is_quoted)
            at += 1
    return found, quoted
