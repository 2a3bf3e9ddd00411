"""Runs the queries of a pipeline side by side, until they are stopped or one of them fails."""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import cloudpickle
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.builder import Builder, Query
from headrace.pipeline.checkpoints import read_query_id
from headrace.pipeline.declaration import Pipeline, Sink, View
from headrace.pipeline.errors import PipelineError, in_words, is_slow_start
from headrace.pipeline.listener import Listener
from headrace.pipeline.loader import MODULE
from headrace.pipeline.parquet_files import claim_directory
from headrace.pipeline.progress import WRITTEN, Observer
from headrace.pipeline.state import State
from headrace.pipeline.storage.files import checkpoint_url
from headrace.pipeline.storage.remote_path import StoragePath
from headrace.pipeline.targets import Parquet
from headrace.spark.launcher import is_remote
from headrace.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_POLL_S: Final = 0.2
_BATCH_TIMEOUT_S: Final = 60.0  # to finish the current batch
_BATCH_POLL_S: Final = 0.02
_EVENTS_TIMEOUT_S: Final = 10.0  # to receive the last events of Spark
_ATTEMPTS: Final = 5  # to start a query whose Python process was too slow to start
logger = logging.getLogger(__name__)


class Runner:
    """Starts every query of a pipeline, and ends all of them when one fails or `stop` is called."""

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
        """Have `run` return after the current batches; called again, have it return at once.

        Any thread may call this, and a signal handler.
        """
        if self._stopping.is_set():
            self._at_once.set()
        self._stopping.set()

    def run(self, *, to_the_end: bool = False) -> None:
        """Run until `stop`, or `to_the_end` of the records that exist now; PipelineError if a query fails."""
        with self._state.running():
            _pickle_by_value(self._pipeline)
            builder = Builder(
                self._spark,
                self._pipeline,
                self._bootstrap,
                since_ms=self._state.since_ms,
                state=self._state,
            )
            queries = list(builder.queries())
            self._spark.streams.addListener(self._listener)
            started: dict[str, StreamingQuery] = {}
            try:
                for each in queries:
                    checkpoint = self._state.checkpoint(each.name)
                    started[each.name] = start(each, checkpoint, to_the_end=to_the_end)
                    if len(started) == 1 and is_remote(self._spark):
                        self._let_it_begin(started[each.name])
                self._wait(queries, started, to_the_end=to_the_end)
            finally:
                self._end(started.values())
                self._state.have_begun(each.name for each in queries)
                self._listener.wait(_EVENTS_TIMEOUT_S)
                self._spark.streams.removeListener(self._listener)

    def _let_it_begin(self, query: "StreamingQuery") -> None:
        """Wait until the first query has planned a batch, before others start on a Spark Connect server.

        Queries that start at the same time would damage a map of the server: see `register_sources`, which
        can only prevent that in a session with a Java of its own.
        """
        deadline = time.monotonic() + _BATCH_TIMEOUT_S
        while query.isActive and not self._state.has_run(str(query.name)) and time.monotonic() < deadline:
            if self._stopping.wait(_POLL_S):
                return

    def _wait(
        self, queries: Iterable[Query], started: "dict[str, StreamingQuery]", *, to_the_end: bool
    ) -> None:
        active = {each.name: each for each in queries}
        attempts = Counter(active.keys())
        have_begun = False
        while active and not self._stopping.is_set():
            if self._state.must_stop():
                self.stop()
            have_begun = have_begun or self._state.have_begun(started)
            for name, query in list(active.items()):
                if started[name].isActive:
                    continue
                error = started[name].exception()
                if error is None:
                    del active[name]
                elif is_slow_start(error) and attempts[name] < _ATTEMPTS:
                    attempts[name] += 1
                    started[name] = start(query, self._state.checkpoint(name), to_the_end=to_the_end)
                else:
                    raise PipelineError(f"{name}: {in_words(error)}") from error
            self._stopping.wait(_POLL_S)

    def _end(self, queries: Iterable["StreamingQuery"]) -> None:
        deadline = time.monotonic() + _BATCH_TIMEOUT_S
        for query in queries:
            try:
                self._finish_batch(query, deadline)
                query.stop()
            except Exception as error:  # noqa: BLE001  the other queries have to be stopped as well
                logger.warning("%s did not stop: %s", query.name, in_words(error))

    def _finish_batch(self, query: "StreamingQuery", deadline: float) -> None:
        """Wait for the current batch, so that the next run does not have to repeat it."""
        current = _last_batch(query)
        while (
            query.isActive
            and query.status["isTriggerActive"]
            and _last_batch(query) == current
            and time.monotonic() < deadline
            and not self._at_once.wait(_BATCH_POLL_S)
        ):
            pass


def start(query: Query, checkpoint: StoragePath, *, to_the_end: bool) -> "StreamingQuery":
    """Start a query, with a count of the rows that it writes; PipelineError if Spark refuses it."""
    directory = query.sink.target.directory if isinstance(query.sink.target, Parquet) else None
    if directory is not None:
        claim_directory(directory, checkpoint)
    counted = query.frame.observe(WRITTEN, F.count(F.lit(1)).alias("rows"))
    writer = (
        counted.writeStream.queryName(query.name)
        .option("checkpointLocation", checkpoint_url(checkpoint))
        .outputMode(query.sink.mode)
    )
    if query.sink.mode != "append" and query.format == "headrace":
        # Spark's sinks in Python support only append; a batch has no output mode.
        # Spark Connect pickles the function, which therefore must not have the query's DataFrame.
        writer = writer.foreachBatch(partial(_append, query.format, query.options, checkpoint))
    else:
        writer = writer.format(query.format).options(**query.options)
    if isinstance(query.sink.target, Parquet) and query.sink.target.partition_by:
        writer = writer.partitionBy(*query.sink.target.partition_by)
    trigger: dict[str, Any] = {"availableNow": True} if to_the_end else {"processingTime": query.sink.every}
    try:
        return writer.trigger(**trigger).start()
    except Exception as error:
        raise PipelineError(f"{query.name}, to {query.sink.target.label}: {in_words(error)}") from error


def _append(
    format_: str, options: Mapping[str, str], checkpoint: StoragePath, frame: "DataFrame", batch_id: int
) -> None:
    own = dict(options)
    if SinkOptions.of(own).exactly_once:
        own |= {"txnAppId": read_query_id(checkpoint), "txnVersion": str(batch_id)}
    frame.write.format(format_).options(**own).mode("append").save()


def _last_batch(query: "StreamingQuery") -> int:
    """Return the number of the last batch that is finished."""
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)


def _pickle_by_value(pipeline: Pipeline) -> None:
    """Have the modules of the pipeline's directory sent to executors, which do not have the files."""
    steps: list[Sink | View] = [*pipeline.sinks.values(), *pipeline.views.values()]
    modules = (sys.modules.get(each.function.__module__) for each in steps if each.function is not None)
    files = {each.__file__ for each in modules if each is not None and each.__name__.startswith(MODULE)}
    directories = {Path(file).parent for file in files if file is not None}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent in directories:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
