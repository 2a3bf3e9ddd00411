"""The configuration of a Java login module, in the syntax of JAAS."""

import re
from typing import Final

_JAAS: Final = re.compile(
    r"""([\w$.-]+)\s*=\s*(?:"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|([^\W\d][\w$.-]*))(?=[\s;]|$)"""
)
_ESCAPED: Final = re.compile(r"\\([0-3]?[0-7]{1,2}|.)")
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
# A JAAS file has sections, `Name { module flag option=value ...; };`. Braces within quotes end no section.
_SECTION: Final = re.compile(
    r"""([\w$.-]+)\s*\{((?:[^{}"']|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')*)\}\s*;"""
)
_COMMENT: Final = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|/\*.*?\*/|//[^\n]*|^\s*\#[^\n]*""", re.DOTALL | re.MULTILINE
)


def jaas_options(config: str) -> dict[str, str]:
    """Return the options of a login module in JAAS syntax: quoted or not, with Java's escapes."""
    return {
        name: word or _ESCAPED.sub(_unescaped, double or single)
        for name, double, single, word in _JAAS.findall(config)
    }


def jaas_section(file: str, section: str) -> dict[str, str] | None:
    """Return the options of one section of a JAAS file, or None if it has no such section."""
    text = _COMMENT.sub(lambda found: found[1] or " ", file)
    found = (body for name, body in _SECTION.findall(text) if name == section)
    body = next(found, None)
    return None if body is None else jaas_options(body)


def jaas_quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescaped(found: re.Match[str]) -> str:
    said = found[1]
    return chr(int(said, 8)) if said[0] in "01234567" else _ESCAPES.get(said, said)
