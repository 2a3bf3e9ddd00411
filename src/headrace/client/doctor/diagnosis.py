"""The findings of `headrace doctor`, each with its meaning and advice. Pure.

The rules are in the other files but `reading`: facts in, findings out.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

OK, WARNING, PROBLEM = "ok", "warning", "problem"
_NAMED: Final = 3  # names in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check, with advice unless it is ok."""

    area: str
    check: str
    state: str
    says: str
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings, and how many are warnings and problems."""

    findings: tuple[Finding, ...]
    warnings: int
    problems: int


def diagnosis(findings: Iterable[Finding]) -> Diagnosis:
    found = tuple(findings)
    return Diagnosis(
        findings=found,
        warnings=sum(each.state == WARNING for each in found),
        problems=sum(each.state == PROBLEM for each in found),
    )


@dataclass(frozen=True, slots=True)
class Area:
    """Creates findings about the machine, a directory or a cluster."""

    name: str

    def ok(self, check: str, says: str) -> Finding:
        return Finding(area=self.name, check=check, state=OK, says=says)

    def warning(self, check: str, says: str, do: str) -> Finding:
        return Finding(area=self.name, check=check, state=WARNING, says=says, do=do)

    def problem(self, check: str, says: str, do: str) -> Finding:
        return Finding(area=self.name, check=check, state=PROBLEM, says=says, do=do)

    def graded(
        self, check: str, says: str, do: str, *, problem: bool = False, warning: bool = False
    ) -> Finding:
        """Return a problem, a warning, or a finding that all is well, with the same sentence."""
        if problem:
            return self.problem(check, says, do)
        return self.warning(check, says, do) if warning else self.ok(check, says)


def some(names: Iterable[object]) -> str:
    """Return the first names: `a, b, c and 4 more`."""
    every = list(map(str, names))
    named = ", ".join(every[:_NAMED])
    return named if len(every) <= _NAMED else f"{named} and {len(every) - _NAMED:,} more"


def gibibytes(number: float) -> str:
    """Return a size: `51.4 GiB`."""
    return f"{number / 1024**3:,.1f} GiB"
