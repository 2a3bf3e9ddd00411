"""A query that several sinks share: each batch is read and decoded once, and written to every sink.

Every sink writes with its own id and the number of the batch. So when Spark repeats a batch because one of
the sinks has failed, the sinks that have it already skip it.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.builder import FanOut, Query
from headrace.pipeline.checkpoints import read_query_id
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.errors import in_words
from headrace.pipeline.expectations import METRIC, Broken
from headrace.pipeline.progress import WRITTEN, newer_rows
from headrace.pipeline.steps import Steps
from headrace.pipeline.storage.remote_path import StoragePath
from headrace.spark.batch import Batch
from headrace.spark.errors import SparkError
from headrace.spark.merge.merge import merge_batch
from headrace.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MOST: Final = 8  # sinks that are written at the same time
_KEPT: Final = 100  # batches whose counts are kept for the listener, which is a little late

logger = logging.getLogger(__name__)


class SinkFailed(SparkError):
    """A sink could not write a batch. Its cause tells whether a restart may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkResult:
    """The rows of a batch that a sink has got, and those that broke an expectation on the way."""

    written: int = 0
    broken: Broken = field(default_factory=dict)
    newer: int = 0  # records of a schema that is newer than the columns


class SinkMetrics:
    """Metrics of the rows of one batch on their way to one sink."""

    def __init__(self) -> None:
        self._observations: dict[str, Observation] = {}

    def observe(self, name: str, frame: "DataFrame", metrics: "Sequence[Column]") -> "DataFrame":
        self._observations[name] = Observation()
        return frame.observe(self._observations[name], *metrics)

    def result(self) -> SinkResult:
        """Return the metrics, after the rows have been written."""
        found = {name: each.get for name, each in self._observations.items()}
        return SinkResult(
            written=int(found.pop(WRITTEN).get("rows", 0)),
            broken={
                name.removeprefix(METRIC): {each: int(rows) for each, rows in counts.items()}
                for name, counts in found.items()
                if name.startswith(METRIC)
            },
            newer=newer_rows(found),
        )


class SharedBatches:
    """The function that Spark calls with every batch of a shared query."""

    def __init__(self, pipeline: Pipeline, query: FanOut, checkpoint: StoragePath) -> None:
        self._pipeline = pipeline
        self._query = query
        self._checkpoint = checkpoint
        self._results: dict[int, dict[str, SinkResult]] = {}  # by batch and sink
        self.failures: dict[str, str] = {}  # by the sink that ended the query

    @property
    def sinks(self) -> list[str]:
        """The full names of the sinks."""
        return [each.name for each in self._query.sinks]

    def result(self, batch_id: int, sink: str) -> SinkResult:
        """Return what a batch has written to a sink."""
        return self._results.get(batch_id, {}).get(sink, SinkResult())

    def __call__(self, batch: "DataFrame", batch_id: int) -> None:
        self.failures.clear()
        batch.persist()
        try:
            # Otherwise, executors that write different sinks would each read the source.
            batch.count()
            self._write(batch, batch_id)
        finally:
            batch.unpersist()

    def _write(self, batch: "DataFrame", batch_id: int) -> None:
        application = read_query_id(self._checkpoint)
        metrics = {each.name: SinkMetrics() for each in self._query.sinks}
        writes = []
        for each in self._query.sinks:
            observe = metrics[each.name].observe
            rows = Steps(self._pipeline, lambda _source: batch, observe).written(each.sink)
            counted = observe(WRITTEN, rows, [F.count(F.lit(1)).alias("rows")])
            writes.append(partial(_write, each, counted, f"{application}-{each.sink.name}", batch_id))
        self._failing(_all(batch.sparkSession, writes))
        found = {name: each.result() for name, each in metrics.items()}
        self._results = dict([*self._results.items(), (batch_id, found)][-_KEPT:])

    def _failing(self, errors: "list[BaseException | None]") -> None:
        """Raise the first error of a sink; Spark's message of the failed query contains it."""
        failed = [
            (each, error) for each, error in zip(self._query.sinks, errors, strict=True) if error is not None
        ]
        self.failures = {each.name: in_words(error) for each, error in failed}
        for each, error in failed:
            raise SinkFailed(f"{each.sink.name}: {in_words(error)}") from error


def _write(query: Query, rows: "DataFrame", application: str, batch_id: int) -> None:
    _activate(rows.sparkSession)
    if query.upserts is not None:
        merge_batch(query.format, query.options, query.upserts, rows, Batch(application, batch_id))
        return
    options = dict(query.options)
    if query.format != "headrace" or SinkOptions.of(options).exactly_once:
        options |= {"txnAppId": application, "txnVersion": str(batch_id)}
    rows.write.format(query.format).options(**options).mode("append").save()


def _activate(session: SparkSession) -> None:
    """Make the session of a batch that of this thread: only there does Spark find sources in Python."""
    sessions = SparkSession._get_j_spark_session_class(session._jvm)  # noqa: SLF001  there is no public call
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001


def _all(session: SparkSession, writes: "list[partial[None]]") -> list[BaseException | None]:
    """Run all writes, each in a thread with the properties of this one: `stop` cancels their jobs, too."""
    with ThreadPoolExecutor(min(_MOST, len(writes)), thread_name_prefix="sink") as pool:
        # Each has a copy of the properties, because Spark changes them in every thread.
        running: list[Future[Any]] = [
            pool.submit(inheritable_thread_target(session)(each)) for each in writes
        ]
        return [each.exception() for each in running]
