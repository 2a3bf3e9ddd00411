"""Expectations on the rows of a source, view or sink: SQL conditions, and what happens to other rows.

A row meets an expectation if its condition is true. A condition that is null is not met, as in WHERE.
"""

from collections.abc import Iterable, Mapping, Sequence
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
_VERDICTS: Final = "__verdicts"

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


def judged(frame: "DataFrame", expectations: Iterable[Expectation]) -> "DataFrame":
    """Return the rows with a column that says for each expectation whether they meet it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    verdicts = []
    for each in expectations:
        met = F.coalesce(F.expr(each.condition).cast("boolean"), F.lit(False))
        try:
            frame.select(met)
        except Exception as error:
            raise PipelineError(f"{each.step}: expectation {each.label}: {in_words(error)}") from error
        verdicts.append(met)
    return frame.withColumn(_VERDICTS, F.array(*verdicts))


def counts(expectations: Iterable[Expectation]) -> "list[Column]":
    """Return for each expectation the number of judged rows that break it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    return [F.count_if(~F.col(_VERDICTS)[n]).alias(each.name) for n, each in enumerate(expectations)]


def enforced(frame: "DataFrame", expectations: Sequence[Expectation]) -> "DataFrame":
    """Return the judged rows that are neither dropped nor quarantined; or have Spark fail at a row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    met = [F.col(_VERDICTS)[n] for n in range(len(expectations))]
    for n, each in enumerate(expectations):
        if each.otherwise is Otherwise.FAIL:
            said = F.lit(f"{each.step}: a row does not meet the expectation {each.label}")
            message = F.concat(said, F.coalesce(F.concat(F.lit(": "), _origin(frame)), F.lit("")))
            frame = frame.where(F.when(met[n], F.lit(True)).otherwise(F.raise_error(message).cast("boolean")))
    for n, each in enumerate(expectations):
        if each.otherwise in {Otherwise.DROP, Otherwise.QUARANTINE}:
            frame = frame.where(met[n])
    return frame.drop(_VERDICTS)


def quarantined(frame: "DataFrame", expectations: Iterable[Expectation]) -> "DataFrame":
    """Return the judged rows for the quarantine, with the reason and the origin."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    reasons = [
        F.when(~F.col(_VERDICTS)[n], F.lit(each.label))
        for n, each in enumerate(expectations)
        if each.otherwise is Otherwise.QUARANTINE
    ]
    found = frame.select("*", F.concat_ws("; ", *reasons).alias(REASON), _origin(frame).alias(ORIGIN))
    return found.where(F.col(REASON) != "").drop(RECORD, _VERDICTS)


def _origin(frame: "DataFrame") -> "Column":
    """Return the place of a row's record, as in `orders-0 offset 17`; null if the row has no `_record`."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    if RECORD not in frame.columns:
        return F.lit(None).cast("string")
    record = F.col(RECORD)
    return F.concat(record["topic"], F.lit("-"), record["partition"], F.lit(" offset "), record["offset"])
