"""What two schemas differ in, where that matters: found once for every pair of types, told in one form."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.registry.formats.limits import (
    MAX_COMPARISONS,
    MAX_DEPTH,
    MAX_MESSAGES,
    MAX_PATH,
    PARTS_OF_ONE,
)

Type = TypeVar("Type")


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why what was written by one schema may not be read by the other.

    `sentence` has {reader} and {writer} where those are to be named: which of them is the new
    schema depends on who asks.
    """

    kind: str
    path: str
    sentence: str
    detail: str = ""

    def told(self, reader: str, writer: str) -> str:
        """The message: a kind that programs look for, a sentence that people read."""
        sentence = self.sentence.replace("{reader}", reader).replace("{writer}", writer)
        extra = f", additionalInfo:'{self.detail}'" if self.detail else ""
        return f"{{errorType:'{self.kind}', description:'{sentence}'{extra}}}"


Differences = list[Difference]


class TooComplex(Exception):
    """Comparing the two would take longer than anybody should wait."""


class Pairs(Generic[Type]):
    """Compares types that may contain themselves; every pair is looked at once.

    A pair that comes up while it is being looked at is taken to fit. Should it turn out not to, whatever
    was decided on that assumption is decided again, until no assumption was wrong.
    """

    def __init__(self, rule: Callable[[Type, Type, str], Differences]) -> None:
        self._rule = rule
        self._wrong: dict[tuple[int, int], Differences] = {}  # assumed to fit in an earlier pass, and did not
        self._done: dict[tuple[int, int], Differences] = {}
        self._assumed: set[tuple[int, int]] = set()
        self._under_way: set[tuple[int, int]] = set()
        self._comparisons = 0
        # What is known by its identity must not make room for another of the same.
        self._kept: list[tuple[Type, Type]] = []

    def all(self, reader: Type, writer: Type, root: str = "/") -> Differences:
        """What keeps `reader` from reading what `writer` wrote; `root` is what paths begin with."""
        while True:
            found = self.compare(reader, writer, root)
            wrong = {pair: self._done[pair] for pair in self._assumed if self._done[pair]}
            if found or wrong.keys() <= self._wrong.keys():  # what does not fit now never will
                return found
            self._wrong |= wrong
            self._done.clear()
            self._assumed.clear()

    def compare(self, reader: Type, writer: Type, path: str) -> Differences:
        """The same for two types within; `path` is where, in the reader."""
        pair = id(reader), id(writer)
        self._spend(1)
        if len(self._under_way) > MAX_DEPTH:
            raise TooComplex
        if pair in self._done:
            return self._done[pair]
        if pair in self._under_way:
            self._assumed.add(pair)
            return self._wrong.get(pair, [])
        self._kept.append((reader, writer))
        self._under_way.add(pair)
        self._done[pair] = found = self._rule(reader, writer, path)[:MAX_MESSAGES]
        self._under_way.remove(pair)
        return found

    def weigh(self, parts: int) -> None:
        """Count a pair by what there is to look at in it: a rule says so before it looks."""
        self._spend(parts // PARTS_OF_ONE)

    def _spend(self, comparisons: int) -> None:
        self._comparisons += comparisons
        if self._comparisons > MAX_COMPARISONS:
            raise TooComplex


def join(path: str, *steps: str | int) -> str:
    """A path with more steps: "/" with "fields" and 0 is /fields/0. Names may be long; it is cut then."""
    if len(path) >= MAX_PATH:
        return path
    return "/".join([path.rstrip("/"), *(str(step)[:MAX_PATH] for step in steps)])[:MAX_PATH]
