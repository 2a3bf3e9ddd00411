"""The topics there are, as a coordinator needs to know them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import re2

from headrace.group.errors import InvalidRegularExpression


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

    @classmethod
    def of(cls, version: int, by_name: Mapping[str, Topic], internal: frozenset[str]) -> "Topics":
        return cls(version, by_name, {topic.topic_id: name for name, topic in by_name.items()}, internal)

    def matching(self, expression: str) -> frozenset[str]:
        """The names that the whole of `expression` matches."""
        matches = compile_expression(expression).fullmatch
        return frozenset(name for name in self.by_name if name not in self.internal and matches(name))

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
_QUIET.max_mem = 1024 * 1024


@lru_cache(maxsize=1024)
def compile_expression(expression: str) -> Any:
    """A regular expression in RE2's language, which takes no more time than its text is long."""
    try:
        return re2.compile(expression, _QUIET)
    except re2.error as error:
        raise InvalidRegularExpression(f"{expression!r} is no regular expression: {error}") from error
