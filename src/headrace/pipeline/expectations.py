"""Expectations on the rows of a source, view or sink: SQL conditions, and what happens to other rows.

A row meets an expectation if its condition is true. A condition that is null is not met, as in WHERE.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.targets import Delta, Iceberg, Target, Topic

METRIC: Final = "expect "
"""The prefix of Spark's observed metrics that count broken expectations; the name of the step follows."""
RECORD: Final = "_record"

Broken = Mapping[str, Mapping[str, int]]
"""The number of rows that broke an expectation, by step and by the expectation's name."""


class Otherwise(StrEnum):
    """What happens to a row that breaks an expectation. All of them are counted."""

    KEEP = "keep"
    DROP = "drop"
    FAIL = "fail"
    QUARANTINE = "quarantine"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    step: str
    name: str
    condition: str  # SQL
    otherwise: Otherwise
    target: Target | None = None  # of rows in quarantine

    @property
    def label(self) -> str:
        return f"{self.name} ({self.condition})"


def check_target(step: str, target: Target, others: Iterable[Expectation]) -> None:
    """Raise PipelineError if rows of `step` cannot be in quarantine there."""
    if not isinstance(target, Topic | Delta | Iceberg):
        raise PipelineError(f"{step}: rows are quarantined in a topic or a table, not in {target.label}")
    if isinstance(target, Topic) and target.raw:
        raise PipelineError(f"{step}: quarantined rows become JSON objects: leave out raw=True")
    for other in others:
        if other.target is not None and other.target != target:
            raise PipelineError(
                f"{step}: rows are quarantined in {other.target.label} already: a step has one quarantine"
            )
