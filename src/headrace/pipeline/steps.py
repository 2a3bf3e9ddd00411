"""The functions of a pipeline, applied to decoded records: those of a stream, or of one batch of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.declaration import Pipeline, Sink, Source, View
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.expectations import METRIC, RECORD, Expectation, Otherwise
from headrace.pipeline.progress import NEWER_METRIC
from headrace.spark.sink_options import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import Column

Observe = Callable[[str, DataFrame, "Sequence[Column]"], DataFrame]
"""Returns a DataFrame whose metrics will be known under a name when its rows have been processed."""

ROW: Final = "_row"  # the columns of a decoded record
REASON: Final = "_reason"  # why a record could not be decoded, or is in quarantine; null if neither
ORIGIN: Final = "_origin"  # the place of the record of a row in quarantine
_VERDICTS: Final = "__verdicts"
VALUE: Final = "_value"  # the bytes of such a record
NEWER: Final = "_newer"  # whether its schema is newer than the columns; only if the records have schema ids


def observe_stream(name: str, frame: DataFrame, metrics: "Sequence[Column]") -> DataFrame:
    """Have Spark report the metrics with the progress of the query."""
    return frame.observe(name, *metrics)


class Steps:
    """The rows of every source, view and sink. `decoded` returns the columns above for a source.

    RECORD is the origin of a row: topic, partition, offset, timestamp, key and headers. `keep` is for the
    sinks of one batch: every step is then computed once for all of them. It gets the rows of a step that has
    a quarantine, judged by the expectations, and returns them stored: a row that is judged twice might be in
    the quarantine and in a sink, or in neither.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        decoded: Callable[[Source], DataFrame],
        observe: Observe = observe_stream,
        keep: Callable[[str, DataFrame], DataFrame] | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._decoded = decoded
        self._observe = observe
        self._observed: set[str] = set()  # steps of the current sink: each is counted once
        self._keep = keep
        self._kept: dict[str, DataFrame] = {}  # judged rows by step
        self._results: dict[str, DataFrame] = {}  # by step; only with `keep`

    def rows(self, source: Source) -> DataFrame:
        """Return the decoded records of a source, with their origin in the column `_record`."""
        return self._expected(source.name)

    def result(self, step: Sink | View) -> DataFrame:
        """Return the result of a function."""
        return self._expected(step.name)

    def _expected(self, step: str) -> DataFrame:
        """Return the rows that the expectations on a step leave, and count those that break one."""
        if step in self._results:
            return self._results[step]
        expectations = self._pipeline.expectations_of(step)
        frame = self._judged(step) if expectations else self._all(step)
        if expectations:
            if step not in self._observed and step not in self._kept:
                self._observed.add(step)
                frame = self._observe(f"{METRIC}{step}", frame, counts(expectations))
            frame = enforced(frame, expectations)
        if self._keep is not None:
            self._results[step] = frame
        return frame

    def _judged(self, step: str) -> DataFrame:
        if step in self._kept:
            return self._kept[step]
        expectations = self._pipeline.expectations_of(step)
        frame = judged(self._all(step), expectations)
        if self._keep is not None and any(expectation.target is not None for expectation in expectations):
            frame = self._kept[step] = self._keep(step, frame)
        return frame

    def _all(self, name: str) -> DataFrame:
        """Return the rows of a step before its expectations."""
        pipeline = self._pipeline
        if name in pipeline.sources:
            decoded = self._decoded(pipeline.sources[name])
            metric = f"{NEWER_METRIC}{name}"
            if NEWER in decoded.columns and metric not in self._observed:
                self._observed.add(metric)
                decoded = self._observe(metric, decoded, [F.count_if(NEWER).alias("rows")])
            return decoded.where(F.col(REASON).isNull()).select(f"{ROW}.*", RECORD)
        step = pipeline.views.get(name) or pipeline.sinks[name]
        arguments = [self._expected(name) for name in step.inputs]
        assert step.function is not None, step
        try:
            frame = step.function(*arguments)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{step.name}(): {in_words(error)}") from error
        if not isinstance(frame, DataFrame):
            raise PipelineError(f"{step.name}() has to return a DataFrame, not {type(frame).__name__}")
        return frame

    def written(self, sink: Sink) -> DataFrame:
        """Return the rows of a sink as its target needs them."""
        self._observed.clear()
        try:
            if sink.quarantine_of is not None:
                return sink.target.shape(self.quarantined(sink.quarantine_of))
            rows = self.dead_letters(sink) if sink.function is None else self.result(sink)
            return sink.target.shape(rows)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{sink.name}(), to {sink.target.label}: {in_words(error)}") from error

    def quarantined(self, step: str) -> DataFrame:
        """Return the rows of a step that break an expectation, with the reason."""
        return quarantined(self._judged(step), self._pipeline.expectations_of(step))

    def dead_letters(self, sink: Sink) -> DataFrame:
        """Return the undecodable records of a source; their headers have the reason and the origin."""
        (name,) = sink.inputs
        bad = self._decoded(self._pipeline.sources[name]).where(F.col(REASON).isNotNull())
        record = F.col(RECORD)
        added = F.array(
            _header("reason", F.col(REASON)),
            _header("pipeline", F.lit(self._pipeline.name)),
            _header("source", F.lit(name)),
            _header("topic", record["topic"]),
            _header("partition", record["partition"]),
            _header("offset", record["offset"]),
            _header("timestamp", F.unix_millis(record["timestamp"])),
        )
        headers = F.concat(added, F.coalesce(record["headers"], F.array().cast(HEADERS)))
        return bad.select(record["key"].alias("key"), F.col(VALUE).alias("value"), headers.alias("headers"))


def _header(name: str, value: "Column") -> "Column":
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))


def judged(frame: DataFrame, expectations: Iterable[Expectation]) -> DataFrame:
    """Return the rows with a column that says for each expectation whether they meet it."""
    verdicts = []
    for expectation in expectations:
        met = F.coalesce(F.expr(expectation.condition).cast("boolean"), F.lit(False))
        try:
            frame.select(met)
        except Exception as error:
            raise PipelineError(
                f"{expectation.step}: expectation {expectation.label}: {in_words(error)}"
            ) from error
        verdicts.append(met)
    return frame.withColumn(_VERDICTS, F.array(*verdicts))


def counts(expectations: Iterable[Expectation]) -> "list[Column]":
    """Return for each expectation the number of judged rows that break it."""
    return [F.count_if(~F.col(_VERDICTS)[n]).alias(each.name) for n, each in enumerate(expectations)]


def enforced(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """Return the judged rows that are neither dropped nor quarantined; or have Spark fail at a row."""
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


def quarantined(frame: DataFrame, expectations: Iterable[Expectation]) -> DataFrame:
    """Return the judged rows for the quarantine, with the reason and the origin."""
    reasons = [
        F.when(~F.col(_VERDICTS)[n], F.lit(each.label))
        for n, each in enumerate(expectations)
        if each.otherwise is Otherwise.QUARANTINE
    ]
    found = frame.select("*", F.concat_ws("; ", *reasons).alias(REASON), _origin(frame).alias(ORIGIN))
    return found.where(F.col(REASON) != "").drop(RECORD, _VERDICTS)


def _origin(frame: DataFrame) -> "Column":
    """Return the place of a row's record, as in `orders-0 offset 17`; null if the row has no `_record`."""
    if RECORD not in frame.columns:
        return F.lit(None).cast("string")
    record = F.col(RECORD)
    return F.concat(record["topic"], F.lit("-"), record["partition"], F.lit(" offset "), record["offset"])
