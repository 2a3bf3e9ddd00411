"""Incompatible differences of two schemas, and the comparison of types that may contain themselves."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from headrace.registry.formats import limits

Type = TypeVar("Type")


@dataclass(frozen=True, slots=True)
class Difference:
    """One reason why the reader may fail on data of the writer.

    `sentence` has the placeholders {reader} and {writer}: either of them may be the new schema.
    """

    kind: str
    path: str
    sentence: str
    detail: str = ""

    def message(self, reader: str, writer: str) -> str:
        """Return the message of the API: a kind for programs, a sentence for people."""
        sentence = self.sentence.replace("{reader}", reader).replace("{writer}", writer)
        extra = f", additionalInfo:'{self.detail}'" if self.detail else ""
        return f"{{errorType:'{self.kind}', description:'{sentence}'{extra}}}"


Differences = list[Difference]


class TooComplex(Exception):
    """The comparison would exceed MAX_COMPARISONS or MAX_DEPTH."""


class Pairs(Generic[Type]):
    """Compares types that may contain themselves; `rule` is called once for every pair.

    A pair that recurs while it is being compared is assumed to be compatible. If the assumption turns out
    wrong, everything is compared again without it, until no assumption was wrong.
    """

    def __init__(self, rule: Callable[[Type, Type, str], Differences]) -> None:
        self._rule = rule
        self._wrong: dict[tuple[int, int], Differences] = {}  # wrong assumptions of earlier passes
        self._done: dict[tuple[int, int], Differences] = {}
        self._assumed: set[tuple[int, int]] = set()
        self._in_progress: set[tuple[int, int]] = set()
        self._comparisons = 0
        # Pairs are keyed by identity, so their types must stay alive.
        self._kept: list[tuple[Type, Type]] = []

    def all(self, reader: Type, writer: Type, root: str = "/") -> Differences:
        """Return what keeps `reader` from reading data of `writer`; paths begin with `root`."""
        while True:
            found = self.compare(reader, writer, root)
            wrong = {pair: self._done[pair] for pair in self._assumed if self._done[pair]}
            if found or wrong.keys() <= self._wrong.keys():  # a pair that is incompatible now stays so
                return found
            self._wrong |= wrong
            self._done.clear()
            self._assumed.clear()

    def compare(self, reader: Type, writer: Type, path: str) -> Differences:
        """Return the differences of two types within the schemas, at `path` of the reader."""
        pair = id(reader), id(writer)
        self._count(1)
        if len(self._in_progress) > limits.MAX_DEPTH:
            raise TooComplex
        if pair in self._done:
            return self._done[pair]
        if pair in self._in_progress:
            self._assumed.add(pair)
            return self._wrong.get(pair, [])
        self._kept.append((reader, writer))
        self._in_progress.add(pair)
        self._done[pair] = found = self._rule(reader, writer, path)[: limits.MAX_MESSAGES]
        self._in_progress.remove(pair)
        return found

    def count_parts(self, parts: int) -> None:
        """Count the parts of a pair towards MAX_COMPARISONS; a rule calls this before it reads them."""
        self._count(parts // limits.PARTS_PER_COMPARISON)

    def _count(self, comparisons: int) -> None:
        self._comparisons += comparisons
        if self._comparisons > limits.MAX_COMPARISONS:
            raise TooComplex


def join(path: str, *steps: str | int) -> str:
    """Return a path with more steps, cut at MAX_PATH: "/" with "fields" and 0 is /fields/0."""
    if len(path) >= limits.MAX_PATH:
        return path
    return "/".join([path.rstrip("/"), *(str(step)[: limits.MAX_PATH] for step in steps)])[: limits.MAX_PATH]
