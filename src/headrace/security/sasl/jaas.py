"""The configuration of a Java login module, in the syntax of JAAS."""

import re
from typing import Final

_JAAS: Final = re.compile(
    r"""([\w$.-]+)\s*=\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([^\W\d][\w$.-]*))(?=[\s;]|$)"""
)
_ESCAPED: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def jaas_options(config: str) -> dict[str, str]:
    """Return the options of a login module in JAAS syntax: quoted or not, with Java's escapes."""
    return {
        name: word or _ESCAPED.sub(_unescaped, double or single)
        for name, double, single, word in _JAAS.findall(config)
    }


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPES.get(said, said)
