"""Comparisons of a schema with earlier versions, which are made outside of a decision.

A decision is quick, and no other decision may be made meanwhile. A comparison can take seconds. So a decision
that needs a comparison which has not been made yet raises `NotCompared`; the caller makes the comparison and
decides again. If other versions or another level have been set meanwhile, that is another comparison.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from headrace.registry.formats import Level, Parsed, Schema, check


@dataclass(frozen=True)
class Comparison:
    """A new schema and the versions that it has to be compatible with; parsed schemas are not compared."""

    new: Schema
    context: str
    olds: tuple[tuple[int, Schema], ...]
    level: Level
    permanent_deletions: int
    """The count of the state: after a permanent deletion a reference may mean another schema."""
    parsed: Parsed = field(compare=False, repr=False)
    parsed_olds: Sequence[Parsed] = field(compare=False, repr=False)

    def messages(self) -> list[str]:
        """Return the incompatibilities. This may take seconds."""
        versions = [version for version, _ in self.olds]
        return check(self.parsed, self.parsed_olds, self.level, versions=versions)


class NotCompared(Exception):
    """The decision needs this comparison first."""

    def __init__(self, comparison: Comparison) -> None:
        super().__init__(f"{len(comparison.olds)} versions have not been compared yet")
        self.comparison = comparison


Verdicts = dict[Comparison, list[str]]


class Comparisons:
    """Makes comparisons on demand or, within `only`, returns the results of earlier ones."""

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
        """Use these results alone, and raise NotCompared for any other comparison."""
        before, self._known = self._known, known
        try:
            yield
        finally:
            self._known = before
