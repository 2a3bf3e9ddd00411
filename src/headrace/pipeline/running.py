"""Running a pipeline: its queries side by side, what they tell, and an end when somebody wants one."""

import logging
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.building import Builder, Query
from headrace.pipeline.declaring import Pipeline, Sink, View
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.listening import Listener
from headrace.pipeline.loading import MODULE
from headrace.pipeline.progress import WRITTEN, Observer
from headrace.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 0.2
_BATCH_S: Final = 60.0  # how long the end of a batch is waited for
_BETWEEN_S: Final = 0.02
_TOLD_S: Final = 10.0
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
        self._listener = Listener(pipeline.name, observers)
        self._stopping = threading.Event()
        self._at_once = threading.Event()

    def stop(self) -> None:
        """Have `run` return after the batches that are under way, called again: at once.

        May be called from anywhere, a signal handler among others.
        """
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()

    def run(self, *, to_the_end: bool = False) -> None:
        """Run until it is stopped, or `to_the_end` of what is there now; PipelineError if a query fails."""
        with self._state.running():
            _send_whole(self._pipeline)
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
                self._listener.wait(_TOLD_S)
                self._spark.streams.removeListener(self._listener)

    def _start(self, query: Query, *, to_the_end: bool) -> "StreamingQuery":
        counted = query.frame.observe(WRITTEN, F.count(F.lit(1)).alias("rows"))
        writer = (
            counted.writeStream.queryName(query.name)
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
        deadline = time.monotonic() + _BATCH_S
        for query in queries:
            try:
                self._finish_batch(query, deadline)
                query.stop()
            except Exception as error:  # noqa: BLE001  the others are to be stopped all the same
                logger.warning("%s did not stop: %s", query.name, in_words(error))

    def _finish_batch(self, query: "StreamingQuery", deadline: float) -> None:
        """Let the batch end: one that is cut off is done again, and a topic would have its rows twice."""
        begun = _batch_number(query)
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and _batch_number(query) == begun
            and time.monotonic() < deadline
            and not self._at_once.wait(_BETWEEN_S)
        ):
            pass


def _batch_number(query: "StreamingQuery") -> int:
    """Of the last that is done."""
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


def _send_whole(pipeline: Pipeline) -> None:
    """Let executors have the functions of the pipeline's file, which they cannot import."""
    steps: list[Sink | View] = [*pipeline.sinks.values(), *pipeline.views.values()]
    for name in {each.function.__module__ for each in steps}:
        if name.startswith(MODULE) and name in sys.modules:
            cloudpickle.register_pickle_by_value(sys.modules[name])  # type: ignore[no-untyped-call]


def _append(query: Query, frame: "DataFrame", _batch_id: int) -> None:
    frame.write.format(query.format).options(**query.options).mode("append").save()


def _raise_if_failed(query: "StreamingQuery") -> None:
    error = query.exception()
    if error is not None:
        raise PipelineError(f"{query.name}: {in_words(error)}") from error
