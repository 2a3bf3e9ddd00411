"""The topics of the cluster as coordinators need them, and the matching of regular expressions."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from headrace.coordinators.errors import InvalidRegularExpression
from headrace.security import expressions

EXPRESSION_CHARS: Final = 4096
"""The longest regular expression that a member may subscribe to."""
REMEMBERED: Final = 256
"""The number of expressions whose matches are cached."""
_STEP: Final = 32  # topics per step


class Topic(NamedTuple):
    topic_id: bytes
    partitions: int


@dataclass(frozen=True, slots=True)
class Topics:
    """An immutable snapshot of all topics. A later snapshot has a greater version."""

    version: int = 0
    by_name: Mapping[str, Topic] = field(default_factory=dict)
    names: Mapping[bytes, str] = field(default_factory=dict)  # by id
    internal: frozenset[str] = frozenset()  # regular expressions do not match these
    _matched: dict[str, frozenset[str]] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, version: int, by_name: Mapping[str, Topic], internal: frozenset[str]) -> "Topics":
        return cls(version, by_name, {topic.topic_id: name for name, topic in by_name.items()}, internal)

    def matching(self, expression: str) -> frozenset[str]:
        """Return the topic names that `expression` matches completely."""
        for _ in self.match(expression):
            pass
        return self._matched[expression]

    def match(self, expression: str) -> Generator[None, None, None]:
        """Match the names in steps and cache the result, so that `matching` returns at once."""
        if expression in self._matched:
            return
        matches = compile_expression(expression).fullmatch
        matched = []
        for number, name in enumerate(self.by_name):
            if not number % _STEP:
                yield
            if name not in self.internal and matches(name):
                matched.append(name)
        while len(self._matched) >= REMEMBERED:
            del self._matched[next(iter(self._matched))]
        self._matched[expression] = frozenset(matched)

    def ids(self, names: Iterable[str]) -> frozenset[bytes]:
        return frozenset(self.by_name[name].topic_id for name in names if name in self.by_name)

    def digest(self, names: Iterable[str]) -> int:
        """Return a hash that changes when one of the topics is created, deleted, recreated or grows.

        It is 0 only if none of the topics exists; a new group begins with 0.
        """
        hashed = blake2b(digest_size=8)
        some = False
        for name in sorted(names):
            topic = self.by_name.get(name)
            if topic is not None:
                some = True
                hashed.update(b"%s\0%s%d\0" % (name.encode(), topic.topic_id, topic.partitions))
        return (int.from_bytes(hashed.digest(), "big", signed=True) or 1) if some else 0


def compile_expression(expression: str) -> Any:
    """Compile the expression of a client; raise InvalidRegularExpression, also if it is too long."""
    if len(expression) > EXPRESSION_CHARS:
        raise InvalidRegularExpression(
            f"the regular expression has {len(expression)} characters, the maximum is {EXPRESSION_CHARS} "
            "(INVALID_REGULAR_EXPRESSION)"
        )
    try:
        return expressions.compile_expression(expression)
    except expressions.InvalidExpression as error:
        raise InvalidRegularExpression(
            f"{expression!r} is not a regular expression: {error} (INVALID_REGULAR_EXPRESSION)"
        ) from error
