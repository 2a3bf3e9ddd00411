"""Expectations on the rows of a source, view or sink: SQL conditions, and what happens to other rows.

A row meets an expectation if its condition is true. A condition that is null is not met, as in WHERE.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.targets import Delta, Iceberg, Target, Topic

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

METRIC: Final = "expect "
"""The prefix of Spark's observed metrics that count broken expectations; the name of the step follows."""
RECORD: Final = "_record"
REASON: Final = "_reason"
ORIGIN: Final = "_origin"

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
    for each in others:
        if each.target is not None and each.target != target:
            raise PipelineError(
                f"{step}: rows are quarantined in {each.target.label} already: a step has one quarantine"
            )


# -- rows ------------------------------------------------------------------------------------------


def counts(frame: "DataFrame", expectations: Iterable[Expectation]) -> "list[Column]":
    """Return for each expectation the number of rows that break it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return [F.count_if(~_met(frame, each)).alias(each.name) for each in expectations]


def enforced(frame: "DataFrame", expectations: Iterable[Expectation]) -> "DataFrame":
    """Return the rows that are neither dropped nor quarantined; or have Spark fail at a row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    for each in expectations:
        met = _met(frame, each)
        if each.otherwise is Otherwise.FAIL:
            said = F.lit(f"{each.step}: a row does not meet the expectation {each.label}")
            message = F.concat(said, F.coalesce(F.concat(F.lit(": "), _origin(frame)), F.lit("")))
            frame = frame.where(F.when(met, F.lit(True)).otherwise(F.raise_error(message).cast("boolean")))
    for each in expectations:
        if each.otherwise in {Otherwise.DROP, Otherwise.QUARANTINE}:
            frame = frame.where(_met(frame, each))
    return frame


def quarantined(frame: "DataFrame", expectations: Iterable[Expectation]) -> "DataFrame":
    """Return the rows for the quarantine, with the reason and the origin."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    reasons = [
        F.when(~_met(frame, each), F.lit(each.label))
        for each in expectations
        if each.otherwise is Otherwise.QUARANTINE
    ]
    found = frame.select("*", F.concat_ws("; ", *reasons).alias(REASON), _origin(frame).alias(ORIGIN))
    return found.where(F.col(REASON) != "").drop(RECORD)


def _met(frame: "DataFrame", expectation: Expectation) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    met = F.coalesce(F.expr(expectation.condition).cast("boolean"), F.lit(False))
    try:
        frame.select(met)
    except Exception as error:
        raise PipelineError(
            f"{expectation.step}: expectation {expectation.label}: {in_words(error)}"
        ) from error
    return met


def _origin(frame: "DataFrame") -> "Column":
    """Return the place of a row's record, as in `orders-0 offset 17`; null if the row has no `_record`."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if RECORD not in frame.columns:
        return F.lit(None).cast("string")
    record = F.col(RECORD)
    return F.concat(record["topic"], F.lit("-"), record["partition"], F.lit(" offset "), record["offset"])
