r"""Files of `name=value` lines, as Java's Properties reads them and as clients of librdkafka keep them.

    security.protocol=SASL_SSL
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
        username="alice" password="wonder\\land";

Java's rules apply: a line that ends in a backslash continues on the next one, whose leading blanks do not
count, and a backslash in a value is written twice.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

_NAME_AND_VALUE: Final = re.compile(r"(?P<name>(?:[^\\=:\s]|\\.)+)\s*[=:]\s*(?P<value>.*)", re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f"}


class InvalidProperties(ValueError):
    """A file is not a properties file. The message has the number of a line, not its text: a secret."""


def parse_properties(text: str, source: str) -> dict[str, str]:
    """Return the values by name; of several values for one name the last counts."""
    found = {}
    for number, line in _logical_lines(text):
        parts = _NAME_AND_VALUE.fullmatch(line)
        if parts is None:
            raise InvalidProperties(f"{source}, line {number}: expected NAME=VALUE")
        found[_unescaped(parts["name"])] = _unescaped(parts["value"]).strip()
    return found


def to_properties(values: Mapping[str, str]) -> str:
    """Return lines that `parse_properties`, Java and librdkafka's clients read as these values.

    librdkafka's clients know no escapes, so a value with a backslash means the same only to the others.
    """
    lines = []
    for name, value in values.items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        lines.append(f"{name}={escaped}\n")
    return "".join(lines)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line with its continuations, without comments."""
    begun, first = "", 0
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        stripped = line.lstrip()
        if not begun and (not stripped or stripped[0] in "#!"):
            continue
        first = first if begun else number
        backslashes = len(stripped) - len(stripped.rstrip("\\"))
        if backslashes % 2:
            begun += stripped[:-1]
        else:
            yield first, begun + stripped
            begun = ""
    if begun:
        yield first, begun


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(_character, text) if "\\" in text else text


def _character(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])
