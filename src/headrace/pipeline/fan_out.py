"""A query that several sinks share: each batch is read and decoded once, and written to every sink.

Every sink writes with its own id and the number of the batch. So when Spark repeats a batch because one of
the sinks has failed, the sinks that have it already skip it.
"""

import hashlib
import logging
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark import inheritable_thread_target
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.builder import Query
from headrace.pipeline.checkpoints import read_query_id
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.errors import in_words
from headrace.pipeline.expectations import METRIC, Broken
from headrace.pipeline.progress import NEWER_METRIC, WRITTEN
from headrace.pipeline.steps import Steps, counts
from headrace.pipeline.storage.files import checkpoint_url, delete_tree, replace_text
from headrace.pipeline.storage.object_store import StoragePath
from headrace.pipeline.streaming_plans import is_repeatable
from headrace.spark.batch import Batch
from headrace.spark.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MOST: Final = 8  # sinks that are written at the same time
_KEPT: Final = 100  # batches whose counts are kept for the listener, which is a little late
_METRICS_TIMEOUT_S: Final = 10.0  # for Spark's events after the last write of a batch
_METRICS_POLL_S: Final = 0.002
_COMPLETE: Final = "_complete"

logger = logging.getLogger(__name__)


class SinkFailed(SparkError):
    """A sink could not write a batch. Its cause tells whether a restart may help."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkResult:
    """The rows of a batch that a sink has got, and those that broke an expectation on the way."""

    written: int = 0
    broken: Broken = field(default_factory=dict)
    newer: int = 0  # records of a schema that is newer than the columns


class SharedBatches:
    """The function that Spark calls with every batch of a shared query."""

    def __init__(self, pipeline: Pipeline, queries: Sequence[Query], checkpoint: StoragePath) -> None:
        self._pipeline = pipeline
        self.queries = queries
        self.checkpoint = checkpoint
        self._results: dict[int, dict[str, SinkResult]] = {}  # by batch and sink
        self.failures: dict[str, str] = {}  # by the sink that ended the query

    @property
    def sinks(self) -> list[str]:
        """The full names of the sinks."""
        return [sink.name for sink in self.queries]

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
        application = read_query_id(self.checkpoint)
        sinks = self.queries
        observations: dict[str, Observation] = {}
        with ExitStack() as kept:
            judged = JudgedRows(self._pipeline, self.checkpoint, batch_id, kept)
            steps = Steps(self._pipeline, lambda _: batch, partial(_observe, observations), judged.keep)
            writes = []
            for sink in sinks:
                rows, count = steps.written(sink.sink), [F.count(F.lit(1)).alias("rows")]
                counted = _observe(observations, f"{WRITTEN} {sink.name}", rows, count)
                own = Batch(f"{application}-{sink.sink.name}", batch_id)
                # The thread has the properties of this one, so that `stop` cancels its jobs, too. Each has a
                # copy of them, because Spark changes them in every thread.
                in_thread = inheritable_thread_target(batch.sparkSession)
                writes.append(in_thread(partial(_write, sink, counted, own)))
            with ThreadPoolExecutor(min(_MOST, len(writes)), thread_name_prefix="sink") as pool:
                futures: list[Future[bool]] = [pool.submit(write) for write in writes]
            done = list(zip(sinks, futures, strict=True))
            failed = [(sink, error) for sink, future in done if (error := future.exception()) is not None]
            self.failures = {sink.name: in_words(error) for sink, error in failed}
            for sink, error in failed:  # Spark's message of the failed query contains the first one
                raise SinkFailed(f"{sink.sink.name}: {in_words(error)}") from error
        read = partial(_metrics, observations, deadline=time.monotonic() + _METRICS_TIMEOUT_S)
        results = {sink.name: SinkResult() for sink in sinks}
        for sink, future in done:
            if future.result():
                passed = self._pipeline.steps_of(sink.sink)
                sources = passed & self._pipeline.sources.keys()
                results[sink.name] = SinkResult(
                    written=read(f"{WRITTEN} {sink.name}").get("rows", 0),
                    broken={
                        step: judged.broken.get(step) or read(f"{METRIC}{step}")
                        for step in passed
                        if self._pipeline.expectations_of(step)
                    },
                    newer=sum(read(f"{NEWER_METRIC}{source}").get("rows", 0) for source in sources),
                )
        self._results = dict([*self._results.items(), (batch_id, results)][-_KEPT:])


class JudgedRows:
    """The rows of a batch that expectations with a quarantine have judged, stored for all sinks.

    Rows that might be judged otherwise the next time are stored beside the checkpoint, so that a batch that
    is repeated, because one of the sinks has failed, is divided between quarantine and sinks as before.
    """

    def __init__(self, pipeline: Pipeline, checkpoint: StoragePath, batch_id: int, cached: ExitStack) -> None:
        self._pipeline = pipeline
        self._directory = checkpoint / "judged"
        self._batch_id = batch_id
        self._cached = cached
        self.broken: dict[str, dict[str, int]] = {}  # by step

    def keep(self, step: str, frame: "DataFrame") -> "DataFrame":
        expectations = self._pipeline.expectations_of(step)
        if is_repeatable(frame):
            frame = frame.persist()
            self._cached.callback(frame.unpersist)
        else:
            # A function or a condition that was changed since then has to be applied again.
            conditions = "".join(expectation.condition for expectation in expectations)
            version = hashlib.sha256(f"{frame.schema.json()}{conditions}".encode()).hexdigest()[:16]
            path = self._directory / str(self._batch_id) / f"{step}-{version}"
            if not path.is_dir() or _COMPLETE not in {file.name for file in path.iterdir()}:
                frame.write.mode("overwrite").parquet(checkpoint_url(path))
                replace_text(path / _COMPLETE, "")
            frame = frame.sparkSession.read.schema(frame.schema).parquet(checkpoint_url(path))
            delete_tree(self._directory / str(self._batch_id - 1))
        broken = frame.agg(*counts(expectations)).first()
        assert broken is not None
        self.broken[step] = broken.asDict()
        return frame


def _observe(
    observations: dict[str, Observation], name: str, frame: "DataFrame", metrics: "Sequence[Column]"
) -> "DataFrame":
    observations[name] = Observation()
    return frame.observe(observations[name], *metrics)


def _metrics(observations: Mapping[str, Observation], name: str, *, deadline: float) -> dict[str, int]:
    """Return the metrics of rows that have been written; nothing if Spark does not report them.

    `Observation.get` would wait for ever for rows that were never computed, or if Spark dropped its event.
    """
    if name not in observations:
        return {}
    while not observations[name]._jo.future().isCompleted():  # type: ignore[union-attr]  # noqa: SLF001
        if time.monotonic() > deadline:
            logger.warning("Spark has not reported the metrics of %s: they are counted as 0", name)
            return {}
        time.sleep(_METRICS_POLL_S)
    return {each: int(rows) for each, rows in observations[name].get.items()}


def _write(query: Query, rows: "DataFrame", batch: Batch) -> bool:
    # Only in a thread whose session is that of the batch does Spark find sources in Python.
    session = rows.sparkSession
    sessions = SparkSession._get_j_spark_session_class(session._jvm)  # noqa: SLF001  there is no public call
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001
    return query.writer.write(rows, batch)
