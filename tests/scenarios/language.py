"""The language of scenarios: one line is `command; command -> expectation; expectation`.

Every command and every expectation is a template such as `kill <brokers>`, which belongs to a function. A
file is parsed completely before it is played: a mistake is reported with file and line at once.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from headrace.protocol.ids import TopicPartition

F = TypeVar("F", bound=Callable[..., Any])

ARROW: Final = "->"
SEPARATOR: Final = ";"
COMMENT: Final = "#"


class ScenarioError(Exception):
    """A scenario cannot be read, or something that it expects did not happen."""

    def __init__(self, file: str, line: int, problem: str) -> None:
        super().__init__(f"{file}:{line}: {problem}")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A command or the subject of an expectation: the function that it stands for, and its arguments."""

    text: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Expectation:
    """`subject: expected`; without a subject, `expected` is the answer to the last request of the line."""

    subject: Phrase | None
    expected: str


@dataclass(frozen=True, slots=True)
class Line:
    number: int
    text: str
    commands: tuple[Phrase, ...]
    expectations: tuple[Expectation, ...]


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split()]


def _partition(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return TopicPartition(topic, int(index))


def _seconds(text: str) -> float:
    return float(text.removesuffix("ms")) / 1000 if text.endswith("ms") else float(text.removesuffix("s"))


_ARGUMENTS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "acks": (r"all|1", {"all": -1, "1": 1}.__getitem__),
    "broker": (r"\d+", int),
    "brokers": (r"\d+(?: \d+)*", _numbers),
    "duration": (r"\d+(?:ms|s)", _seconds),
    "host": (r"\d+|zookeeper", str),
    "offset": (r"\d+", int),
    "partition": (r"t-0", _partition),
    "value": (r"[a-z]\w*", str),
    "values": (r"[a-z]\w*(?: [a-z]\w*)*", str.split),
}


class Vocabulary:
    """Templates and the functions that they stand for."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._functions: dict[str, tuple[re.Pattern[str], Callable[..., Any]]] = {}

    @property
    def templates(self) -> list[str]:
        return list(self._functions)

    def phrase(self, template: str) -> Callable[[F], F]:
        """Return a decorator that enters a function under `template`."""

        def enter(function: F) -> F:
            self._functions[template] = re.compile(_pattern(template)), function
            return function

        return enter

    def parse(self, text: str) -> Phrase:
        """Return the phrase that `text` is; raise ValueError if no template fits."""
        for pattern, function in self._functions.values():
            if found := pattern.fullmatch(text):
                arguments = {
                    name: _ARGUMENTS[name.rstrip("_2")][1](value) for name, value in found.groupdict().items()
                }
                return Phrase(text, function, arguments)
        word = text.partition(" ")[0]
        near = [template for template in self._functions if template.partition(" ")[0] == word]
        known = " | ".join(near or self._functions)
        raise ValueError(f"{text!r} is not {self._kind}; expected: {known}")


def _pattern(template: str) -> str:
    """Return the regular expression of a template; a second `<host>` is the argument `host_2`."""
    parts, seen = [], set()
    for part in re.split(r"(<\w+>)", template):
        if not part.startswith("<"):
            parts.append(re.escape(part))
            continue
        name = part.strip("<>")
        group = f"{name}_2" if name in seen else name
        seen.add(name)
        parts.append(f"(?P<{group}>{_ARGUMENTS[name][0]})")
    return "".join(parts)


def parse(file: str, text: str, commands: Vocabulary, subjects: Vocabulary) -> list[Line]:
    """Return the lines of a scenario; raise ScenarioError, with the line, for what is not in the language."""
    lines = []
    for number, written in enumerate(text.splitlines(), 1):
        content = " ".join(written.partition(COMMENT)[0].split())
        if not content:
            continue
        before, arrow, after = content.partition(ARROW)
        try:
            done = tuple(commands.parse(part) for part in _parts(before))
            expected = tuple(_expectation(part, subjects) for part in _parts(after))
        except ValueError as error:
            raise ScenarioError(file, number, str(error)) from None
        if arrow and not expected:
            raise ScenarioError(file, number, f"{ARROW!r} is followed by no expectation")
        lines.append(Line(number, content, done, expected))
    return lines


def _parts(text: str) -> Iterable[str]:
    return (part.strip() for part in text.split(SEPARATOR) if part.strip())


def _expectation(text: str, subjects: Vocabulary) -> Expectation:
    subject, colon, expected = text.partition(":")
    if not colon:
        return Expectation(None, text)
    return Expectation(subjects.parse(subject.strip()), expected.strip())
