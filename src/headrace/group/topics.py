"""The topics there are, as a coordinator needs to know them."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import re2

from headrace.group.errors import InvalidRegularExpression

EXPRESSION_CHARS: Final = 4096
"""How long a regular expression may be."""
EXPRESSION_BYTES: Final = 256 * 1024
"""What a compiled expression may take, its automaton included. re2 keeps 128 of them."""
REMEMBERED: Final = 256
"""Expressions whose topics are remembered."""
_STEP: Final = 32  # topics between two steps


class Topic(NamedTuple):
    topic_id: bytes
    partitions: int


@dataclass(frozen=True, slots=True)
class Topics:
    """All topics at one moment. A later moment has a greater version."""

    version: int = 0
    by_name: Mapping[str, Topic] = field(default_factory=dict)
    names: Mapping[bytes, str] = field(default_factory=dict)  # by id
    internal: frozenset[str] = frozenset()  # no regular expression means these
    _matched: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, version: int, by_name: Mapping[str, Topic], internal: frozenset[str]) -> "Topics":
        return cls(version, by_name, {topic.topic_id: name for name, topic in by_name.items()}, internal)

    def matching(self, expression: str) -> frozenset[str]:
        """The names that the whole of `expression` matches."""
        for _ in self.match(expression):
            pass
        return self._matched[expression]

    def match(self, expression: str) -> Generator[None, None, None]:
        """Find and remember those names in steps: `matching` then has them at once."""
        if expression in self._matched:
            return
        matches = compile_expression(expression).fullmatch
        found = []
        for number, name in enumerate(self.by_name):
            if not number % _STEP:
                yield
            if name not in self.internal and matches(name):
                found.append(name)
        while len(self._matched) >= REMEMBERED:
            del self._matched[next(iter(self._matched))]
        self._matched[expression] = frozenset(found)

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        """The ids of those topics that there are."""
        return frozenset(self.by_name[name].topic_id for name in names if name in self.by_name)

    def digest(self, names: Iterable[str]) -> int:
        """A number that changes when one of these topics comes, goes, grows, or is made anew; never 0.

        Of no topics at all it is 0, which is what a group begins with.
        """
        hashed = blake2b(digest_size=8)
        some = False
        for name in sorted(names):
            topic = self.by_name.get(name)
            if topic is not None:
                some = True
                hashed.update(b"%s\0%s%d\0" % (name.encode(), topic.topic_id, topic.partitions))
        return (int.from_bytes(hashed.digest(), "big", signed=True) or 1) if some else 0


_QUIET = re2.Options()
_QUIET.log_errors = False
_QUIET.max_mem = EXPRESSION_BYTES


def compile_expression(expression: str) -> Any:
    """A regular expression in RE2's language, which takes no more time than its text is long."""
    if len(expression) > EXPRESSION_CHARS:
        raise InvalidRegularExpression(
            f"a regular expression of {len(expression)} characters: {EXPRESSION_CHARS} is the most"
        )
    try:
        return re2.compile(expression, _QUIET)  # it has a cache of its own
    except re2.error as error:
        raise InvalidRegularExpression(f"{expression!r} is no regular expression: {error}") from error
