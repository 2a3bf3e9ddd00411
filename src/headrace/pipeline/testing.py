"""Run a pipeline on given records, without a cluster, and look at the rows of every step.

    from headrace.pipeline.testing import run_on

    def test_dear_orders_are_alerts(spark):  # a SparkSession
        result = run_on(spark, shop.pipeline, {"orders": [{"id": "1", "price": 250.0}, "no order"]})
        assert result.rows("alerts") == [{"id": "1", "price": 250.0}]
        assert result.bad["orders"] == [BadRecord(value=b"no order", reason="it is not JSON")]

All records are one batch: windows and aggregations show the result that a stream has at the end. Nothing is
written to the sinks.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from headrace.client.records.one_by_one import Record
from headrace.pipeline.builder import Builder
from headrace.pipeline.declaration import Pipeline, Sink, Source, View
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.expectations import METRIC, Broken
from headrace.pipeline.loader import pickle_by_value
from headrace.pipeline.steps import REASON, VALUE, Steps, counts
from headrace.spark.sink_options import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

Given = bytes | str | Mapping[str, Any] | Record | None
"""A record: its value as bytes or text, or an object that becomes JSON; a `Record` has a key and headers."""

_SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    f"timestampType int, headers {HEADERS}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """A record that could not be decoded."""

    value: bytes | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRows:
    """The rows of a source, view or sink, after its expectations."""

    columns: list[str]
    rows: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The rows of every step by its name, in the order of the declarations."""

    steps: Mapping[str, StepRows]
    bad: Mapping[str, list[BadRecord]]  # by source
    quarantined: Mapping[str, list[dict[str, Any]]]  # by step, with the reason
    broken: Broken = field(default_factory=dict)  # rows by step and expectation, also those that are kept

    def rows(self, step: str) -> list[dict[str, Any]]:
        return self.steps[step].rows


def run_on(spark: "SparkSession", pipeline: Pipeline, inputs: Mapping[str, Iterable[Given]]) -> Result:
    """Return the rows of every step for the records of each source; PipelineError if one of them fails."""
    pipeline.check()
    if unknown := inputs.keys() - pipeline.sources.keys():
        known = ", ".join(pipeline.sources) or "none"
        raise PipelineError(f"there is no source {min(unknown)!r}, only {known}")
    pickle_by_value(pipeline)
    return _Run(spark, pipeline, inputs).result()


class _Run:
    def __init__(
        self, spark: "SparkSession", pipeline: Pipeline, inputs: Mapping[str, Iterable[Given]]
    ) -> None:
        self._pipeline = pipeline
        builder = Builder(spark, pipeline, "")
        self._decoded = {
            name: builder.decode(source, _records(spark, source, inputs.get(name, ())))
            for name, source in pipeline.sources.items()
        }
        self._kept: list[DataFrame] = []
        self._observations: dict[str, Observation] = {}
        self._broken: dict[str, dict[str, int]] = {}
        self._steps = Steps(pipeline, lambda source: self._decoded[source.name], self._observe, self._keep)

    def result(self) -> Result:
        pipeline, steps, bad = self._pipeline, {}, {}
        declared: list[Source | View | Sink] = [*pipeline.sources.values(), *pipeline.views.values()]
        try:
            for step in [*declared, *pipeline.sinks.values()]:
                frame = self._steps.rows(step) if isinstance(step, Source) else self._steps.result(step)
                steps[step.name] = StepRows(columns=frame.columns, rows=_collect(step.name, frame))
                if (own := self._observations.get(f"{METRIC}{step.name}")) is not None:
                    self._broken[step.name] = {name: int(rows) for name, rows in own.get.items()}
            for name, decoded in self._decoded.items():
                rows = _collect(name, decoded.where(F.col(REASON).isNotNull()).select(VALUE, REASON))
                bad[name] = [BadRecord(value=row[VALUE], reason=row[REASON]) for row in rows]
            quarantined = {
                sink.quarantine_of: _collect(sink.quarantine_of, self._steps.quarantined(sink.quarantine_of))
                for sink in pipeline.queries()
                if sink.quarantine_of is not None
            }
            return Result(steps=steps, bad=bad, quarantined=quarantined, broken=self._broken)
        finally:
            for kept in self._kept:
                kept.unpersist()

    def _observe(self, name: str, frame: DataFrame, metrics: "Sequence[Column]") -> DataFrame:
        self._observations[name] = Observation()
        return frame.observe(self._observations[name], *metrics)

    def _keep(self, step: str, frame: DataFrame) -> DataFrame:
        kept = frame.persist()
        self._kept.append(kept)
        (self._broken[step],) = _collect(step, kept.agg(*counts(self._pipeline.expectations_of(step))))
        return kept


def _collect(step: str, frame: DataFrame) -> list[dict[str, Any]]:
    try:
        return [_plain(row.asDict(recursive=True)) for row in frame.collect()]
    except Exception as error:
        raise PipelineError(f"{step}: {in_words(error)}") from error


def _plain(value: Any) -> Any:
    """Return bytes for what Spark returns as bytearray, which has no hash."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _records(spark: "SparkSession", source: Source, given: Iterable[Given]) -> DataFrame:
    topic = source.topic.split(",", maxsplit=1)[0].strip()
    rows: list[tuple[Any, ...]] = []
    for offset, value in enumerate(given):
        data = json.dumps(value, default=str) if isinstance(value, Mapping) else value
        if not isinstance(data, Record):
            data = Record(value=data.encode() if isinstance(data, str) else data)
        at = datetime.fromtimestamp((data.timestamp_ms or 0) / 1000, UTC)
        headers = [tuple(header) for header in data.headers]
        rows.append((data.key, data.value, topic, 0, offset, at, 0, headers))
    return spark.createDataFrame(rows, _SCHEMA)
