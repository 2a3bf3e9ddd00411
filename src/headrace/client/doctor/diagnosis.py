"""Findings of `headrace doctor`, each with what it means and what to do. Pure.

Facts go in, findings come out: `doctor_machine`, `doctor_data` and `doctor_cluster` have the rules.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

OK, WARNING, PROBLEM = "ok", "warning", "problem"
_NAMED: Final = 3  # of many, in a sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check: what was found, what it means, and what to do unless it is fine."""

    area: str
    check: str
    state: str
    says: str
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All findings."""

    findings: tuple[Finding, ...]
    warnings: int
    problems: int


def diagnosis(findings: Iterable[Finding]) -> Diagnosis:
    """Count the findings."""
    found = tuple(findings)
    return Diagnosis(
        findings=found,
        warnings=sum(each.state == WARNING for each in found),
        problems=sum(each.state == PROBLEM for each in found),
    )


@dataclass(frozen=True, slots=True)
class Area:
    """Makes findings about the machine, a directory or a cluster."""

    name: str

    def ok(self, check: str, says: str) -> Finding:
        return Finding(area=self.name, check=check, state=OK, says=says)

    def warning(self, check: str, says: str, do: str) -> Finding:
        return Finding(area=self.name, check=check, state=WARNING, says=says, do=do)

    def problem(self, check: str, says: str, do: str) -> Finding:
        return Finding(area=self.name, check=check, state=PROBLEM, says=says, do=do)


def some(names: Iterable[object]) -> str:
    """`a, b, c and 4 more`."""
    every = list(map(str, names))
    named = ", ".join(every[:_NAMED])
    return named if len(every) <= _NAMED else f"{named} and {len(every) - _NAMED:,} more"


def gibibytes(number: float) -> str:
    """`51.4 GiB`."""
    return f"{number / 1024**3:,.1f} GiB"
