"""Comparing a schema with those before it: said first, done by whoever has the time, known afterwards.

Deciding is quick, and nobody else may decide meanwhile. Comparing is not quick. So a decision that needs a
comparison which is not known ends in `NotCompared`; once that has been made, one decides again. Should other
versions, or another level, have come meanwhile, then that is another comparison, which is not known either.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.registry.formats import Level, Parsed, Schema, check


@dataclass(frozen=True)
class Comparison:
    """A schema and the versions that it is to follow; the same if those are, however they are understood."""

    new: Schema
    context: str
    olds: tuple[tuple[int, Schema], ...]
    level: Level
    forgotten: int
    """How often versions have gone for good: a reference may be to something else since."""
    parsed: Parsed = field(compare=False, repr=False)
    parsed_olds: Sequence[Parsed] = field(compare=False, repr=False)

    def messages(self) -> list[str]:
        """What keeps it from following; that may take a while."""
        versions = [version for version, _ in self.olds]
        return check(self.parsed, self.parsed_olds, self.level, versions=versions)


class NotCompared(Exception):
    """It cannot be decided before this comparison has been made."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(f"{len(comparison.olds)} versions are to be compared with")
        self.comparison = comparison


Verdicts = dict[Comparison, list[str]]


class Comparing:
    """Makes comparisons when they are asked for; or, while others wait, only knows those made before."""

    def __init__(self) -> None:
        self._known: Verdicts | None = None

    def messages(self, comparison: Comparison) -> list[str]:
        if self._known is None or not comparison.olds:
            return comparison.messages()
        if comparison not in self._known:
            raise NotCompared(comparison)
        return self._known[comparison]

    @contextmanager
    def only(self, known: Verdicts) -> Iterator[None]:
        """What is decided meanwhile has these verdicts, and NotCompared for the rest."""
        before, self._known = self._known, known
        try:
            yield
        finally:
            self._known = before
