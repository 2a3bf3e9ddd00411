r"""The option subscribePattern: a regular expression that selects topics by their whole names.

RE2 matches in time linear in the name. Its syntax is Java's but for a few constructs: those that RE2 does
not have, and those that have another meaning in RE2, such as `\12` and `[a-z&&[^b]]`, are refused.
"""

import re
from functools import cache
from typing import Any, Final

from headrace.security.expressions import InvalidExpression, compile_expression

_COUNTS: Final = r"\d+(?:,\d*)?\}"
# A quoted text, an escape with braces, the beginning of a class (a bracket that would close it at once is one
# of its characters), or one character.
_TOKEN: Final = re.compile(r"\\Q.*?(?:\\E|$)|\\[xpP]\{[^}]*\}|\[\^?\]?|\\?.", re.DOTALL)
_REFUSED: Final = (
    (r"\(\?<?[=!]", "lookaround", "name the topics with subscribe, or match what their names have in common"),
    (r"\(\?>", "an atomic group", "write (?:...)"),
    (r"\\[1-9]|\\k<", "a backreference", "write the alternatives out"),
    (rf"(?:[*+?]|\{{{_COUNTS})\+", "a possessive quantifier", "leave out its '+'"),
    (rf"\{{(?!{_COUNTS})", "no quantifier", r"write {n}, {n,} or {n,m}"),
    (r"\(\?[a-zA-Z-]*\)[*+?{]", "a quantifier of flags", "leave the quantifier out"),
    (r"\\0", "an octal escape", r"write the character, or \x and two hexadecimal digits"),
    (r"\\[pP]\{(?!\w\w?\})", "a named property", r"write a class as [A-Za-z], or a category as \p{L}"),
)
_REFUSED_IN_CLASSES: Final = (
    *_REFUSED[-2:],
    (r"\[", "a class inside of a class", r"write [a-cx-z] for [a-c[x-z]], and \[ for the character"),
    (r"&&", "an intersection of classes", "write the remaining characters out"),
)


@cache
def topic_pattern(text: str) -> Any:
    """Return the compiled expression, whose `fullmatch` is true for the topics; raise InvalidExpression."""
    at, is_class = 0, False
    while token := _TOKEN.match(text, at):
        for construct, name, instead in _REFUSED_IN_CLASSES if is_class else _REFUSED:
            if refused := re.compile(construct).match(text, at):
                raise InvalidExpression(f"{refused[0]!r} is {name}, which RE2 does not support: {instead}")
        if is_class or token[0].startswith("["):
            is_class = token[0] != "]"
        at = token.end()
    return compile_expression(text)
