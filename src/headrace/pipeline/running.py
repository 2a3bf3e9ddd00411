"""Running a pipeline: its queries side by side, what they tell, and an end when somebody wants one."""

import json
import logging
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headrace.pipeline.building import Builder, Query
from headrace.pipeline.declaring import Pipeline
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.progress import Observer, Progress, of_batch
from headrace.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 0.2
logger = logging.getLogger(__name__)


class Runner:
    """Starts every query of a pipeline, and ends all of them when one fails or when `stop` is called."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        bootstrap: str,
        state: State,
        observers: Sequence[Observer] = (),
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._state = state
        self._listener = _Listener(pipeline.name, observers)
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Have `run` return soon; may be called from anywhere, a signal handler among others."""
        self._stopping.set()

    def run(self, *, to_the_end: bool = False) -> None:
        """Run until it is stopped, or `to_the_end` of what is there now; PipelineError if a query fails."""
        with self._state.running():
            builder = Builder(self._spark, self._pipeline, self._bootstrap, since_ms=self._state.since_ms)
            queries = list(builder.queries())
            self._spark.streams.addListener(self._listener)
            started: list[StreamingQuery] = []
            try:
                for query in queries:
                    started.append(self._start(query, to_the_end=to_the_end))  # noqa: PERF401  one may fail
                self._wait(started)
            finally:
                self._end(started)
                self._spark.streams.removeListener(self._listener)

    def _start(self, query: Query, *, to_the_end: bool) -> "StreamingQuery":
        writer = (
            query.frame.writeStream.queryName(query.name)
            .option("checkpointLocation", str(self._state.checkpoint(query.name)))
            .outputMode(query.mode)
        )
        if query.mode != "append" and query.format == "headrace":
            # A Python sink of Spark's knows no other mode; a batch of it knows nothing of modes.
            writer = writer.foreachBatch(partial(_append, query))
        else:
            writer = writer.format(query.format).options(**query.options)
        if query.partition_by:
            writer = writer.partitionBy(*query.partition_by)
        trigger: dict[str, Any] = {"availableNow": True} if to_the_end else {"processingTime": query.every}
        try:
            return writer.trigger(**trigger).start()
        except Exception as error:
            raise PipelineError(f"{query.name}, to {query.label}: {in_words(error)}") from error

    def _wait(self, queries: Iterable["StreamingQuery"]) -> None:
        left = list(queries)
        while left and not self._stopping.is_set():
            for query in list(left):
                if not query.isActive:
                    left.remove(query)
                    _raise_if_failed(query)
            self._stopping.wait(_LOOK_S)

    def _end(self, queries: Iterable["StreamingQuery"]) -> None:
        for query in queries:
            try:
                query.stop()
            except Exception as error:  # noqa: BLE001  the others are to be stopped all the same
                logger.warning("%s did not stop: %s", query.name, in_words(error))


def _append(query: Query, frame: "DataFrame", _batch_id: int) -> None:
    frame.write.format(query.format).options(**query.options).mode("append").save()


def _raise_if_failed(query: "StreamingQuery") -> None:
    error = query.exception()
    if error is not None:
        raise PipelineError(f"{query.name}: {in_words(error)}")


class _Listener(StreamingQueryListener):
    """Hands what Spark says of the pipeline's queries to whoever wants to know."""

    def __init__(self, pipeline: str, observers: Sequence[Observer]) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._observers = observers
        self._names: dict[str, str] = {}  # of runs

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  Spark's name
        name = event.name or ""
        if name.startswith(f"{self._pipeline}."):
            self._names[str(event.runId)] = name
            self._tell(Progress(pipeline=self._pipeline, query=name, event="started", at_ms=_now_ms()))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802  Spark's name
        if str(event.progress.runId) in self._names:
            self._tell(of_batch(self._pipeline, json.loads(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802  Spark's name
        name = self._names.get(str(event.runId))
        if name is not None:
            self._tell(Progress(pipeline=self._pipeline, query=name, event="idle", at_ms=_now_ms()))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802  Spark's name
        name = self._names.pop(str(event.runId), None)
        if name is not None:
            said = in_words(RuntimeError(event.exception)) if event.exception else ""
            ended = "failed" if event.exception else "ended"
            self._tell(
                Progress(pipeline=self._pipeline, query=name, event=ended, at_ms=_now_ms(), error=said)
            )

    def _tell(self, progress: Progress) -> None:
        for observer in self._observers:
            try:
                observer(progress)
            except Exception as error:  # noqa: BLE001  who looks on must not end a query
                logger.warning("%s: progress was not passed on: %s", progress.query, error)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
