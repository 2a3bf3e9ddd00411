"""Runs the queries of a pipeline side by side, until they are stopped or one of them fails for good."""

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import functions as F  # noqa: N812

from headrace.client.wire.security import Security
from headrace.pipeline.builder import Builder, Query, SinkWriter
from headrace.pipeline.checkpoints import read_checkpoint, read_query_id
from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.errors import LockLost, PipelineError, in_words, is_slow_start
from headrace.pipeline.fan_out import SharedBatches
from headrace.pipeline.graph import graph_of, report
from headrace.pipeline.listener import Listener
from headrace.pipeline.loader import pickle_by_value
from headrace.pipeline.maintenance import Caretaker
from headrace.pipeline.parquet_files import claim_directory
from headrace.pipeline.progress import WRITTEN, Observer
from headrace.pipeline.restarts import Activity, Restart, Restarts, Watchdog
from headrace.pipeline.state import PipelineState
from headrace.pipeline.storage.files import checkpoint_url
from headrace.pipeline.storage.object_store import StoragePath
from headrace.pipeline.targets import Delta, Iceberg, Parquet
from headrace.protocol.ids import TopicPartition
from headrace.spark.batch import Batch
from headrace.spark.errors import DataLoss, InvalidOption
from headrace.spark.launcher import JAVA_END_S, is_remote, java_end
from headrace.spark.sink_options import UnfitSchema
from headrace.spark.tables.schema import UnfitTable
from headrace.tables.reader.cluster import ClusterConnections
from headrace.tables.reader.offsets import LATEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_POLL_S: Final = 0.2
_BATCH_TIMEOUT_S: Final = 60.0  # to finish the current batch
_BATCH_POLL_S: Final = 0.02
_EVENTS_TIMEOUT_S: Final = 10.0  # to receive the last events of Spark
_WATCH_EVERY_S: Final = 5.0
_ATTEMPTS: Final = 5  # to start a query whose Python process was too slow to start
# Errors that a restart cannot resolve.
_PERMANENT: Final = tuple(
    f"{kind.__module__}.{kind.__qualname__}: "
    for kind in (PipelineError, UnfitTable, UnfitSchema, InvalidOption, DataLoss)
)
_RAISED: Final = "[USER_RAISED_EXCEPTION]"  # by raise_error: a bad row, or an expectation that is not met
logger = logging.getLogger(__name__)


class Runner:
    """Starts every query of a pipeline, and ends all of them when one fails or `stop` is called."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        bootstrap: str,
        state: PipelineState,
        observers: Sequence[Observer] = (),
        *,
        restart: Restart | None = None,  # None: as the pipeline says
        watchdog: Watchdog | None = None,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._state = state
        self._listener = Listener(pipeline.name, observers, report(graph_of(pipeline)), self._latest)
        self._restarts = Restarts(restart or pipeline.restart or Restart(limit=0))
        self._watchdog = watchdog or Watchdog()
        self._watch_at_s = 0.0
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
            pickle_by_value(self._pipeline)
            targets = {name: sink.target for name, sink in self._pipeline.sinks.items()}
            tables = {name: table for name, table in targets.items() if isinstance(table, Delta | Iceberg)}
            caretaker = Caretaker(tables, self._state.path / "maintenance.json")
            with caretaker.at_work(to_the_end=to_the_end):
                while not self._run_to_newer_schema(to_the_end=to_the_end):
                    logger.info("%s: a schema has a newer version, restarting", self._pipeline.name)

    def _latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        security = Security.of(self._pipeline.client)
        with closing(ClusterConnections(self._bootstrap, security, timeout_s=_EVENTS_TIMEOUT_S)) as cluster:
            return cluster.offsets(dict.fromkeys(partitions, LATEST))

    def _run_to_newer_schema(self, *, to_the_end: bool) -> bool:
        """Run the queries; return False if they have to be restarted with a newer version of a schema."""
        builder = Builder(
            self._spark, self._pipeline, self._bootstrap, since_ms=self._state.since_ms, state=self._state
        )
        starts = self._starts(builder, to_the_end=to_the_end)
        self._listener.outdated = builder.is_outdated
        self._spark.streams.addListener(self._listener)
        started: dict[str, StreamingQuery] = {}
        try:
            for name, start in starts.items():
                started[name] = start()
                if len(started) == 1 and is_remote(self._spark):
                    self._let_it_begin(started[name])
            self._wait(builder, starts, started)
        except LockLost:
            self._at_once.set()  # the current batches are those of another process now
            raise
        except (Py4JError, ConnectionError) as error:
            if isinstance(error, Py4JJavaError) or (how := java_end(self._spark, wait_s=JAVA_END_S)) is None:
                raise
            self._listener.lost(how)
            raise PipelineError(how) from error
        except PipelineError:
            # The failed batch is repeated. The versions of a schema only increase, so this ends.
            if self._stopping.is_set() or not builder.is_outdated():
                raise
            return False
        finally:
            if java_end(self._spark) is None:
                self._end(started.values())
                self._state.have_begun(starts)
                self._listener.wait(_EVENTS_TIMEOUT_S)
                self._spark.streams.removeListener(self._listener)
        return True

    def _starts(self, builder: Builder, *, to_the_end: bool) -> "dict[str, Callable[[], StreamingQuery]]":
        """Return for each query, shared or of one sink, the function that starts it."""
        division = builder.division(self._state)
        left = self._state.share(self._pipeline, division).left
        sinks = {sink.name: sink for sink in self._pipeline.queries()}
        starts: dict[str, Callable[[], StreamingQuery]] = {}
        for shared in division.shared:
            if shared.sinks:
                name, checkpoint = shared.name, self._state.checkpoint(shared.name)
                batches = SharedBatches(self._pipeline, builder.sinks_of(shared), checkpoint)
                self._listener.share(name, batches)
                records = builder.decoded(self._pipeline.sources[shared.source])
                starts[name] = partial(start_shared, name, records, batches, to_the_end=to_the_end)
        for name in division.own:
            full = self._pipeline.query_name(name)
            own = builder.of_sink(sinks[name], left.get(full))
            starts[full] = partial(start, own, self._state.checkpoint(full), to_the_end=to_the_end)
        return starts

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
        self,
        builder: Builder,
        starts: "Mapping[str, Callable[[], StreamingQuery]]",
        started: "dict[str, StreamingQuery]",
    ) -> None:
        active = set(starts)
        due: dict[str, float] = {}  # when failed queries are restarted
        attempts = Counter(active)
        have_begun = False
        while active and not self._stopping.is_set():
            if self._state.must_stop():
                self.stop()
            have_begun = have_begun or self._state.have_begun(started)
            for name in sorted(active):
                if started[name].isActive:
                    continue
                error = started[name].exception()
                if error is None:
                    active.remove(name)
                elif is_slow_start(error) and attempts[name] < _ATTEMPTS:
                    attempts[name] += 1
                    started[name] = starts[name]()
                elif builder.is_outdated():
                    raise PipelineError(f"{name}: {in_words(error)}") from error
                elif name not in due:
                    due[name] = time.monotonic() + self._backoff_s(name, started[name], error)
                elif time.monotonic() >= due[name]:
                    del due[name]
                    started[name] = starts[name]()
            self._watch({name: started[name] for name in active})
            self._stopping.wait(_POLL_S)

    def _watch(self, queries: "Mapping[str, StreamingQuery]") -> None:
        """Report a batch that runs no job. On Spark Connect, nobody knows which jobs belong to a query."""
        now_s = time.monotonic()
        if now_s < self._watch_at_s or is_remote(self._spark):
            return
        self._watch_at_s = now_s + min(_WATCH_EVERY_S, self._watchdog.after_s)
        tracker = self._spark.sparkContext.statusTracker()
        for name, query in queries.items():
            status, jobs = query.status, set(tracker.getJobIdsForGroup(str(query.runId)))
            activity = Activity(
                in_batch=query.isActive and status["isTriggerActive"],
                batch=_last_batch(query) + 1,
                last_job=max(jobs, default=-1),
                has_running_job=not jobs.isdisjoint(tracker.getActiveJobsIds()),
            )
            idle_s = self._watchdog.check(name, activity, now_s)
            if idle_s is not None:
                self._listener.stalled(
                    name, f"its batch has run no Spark job for {idle_s:.0f} s: {status['message']}"
                )

    def _backoff_s(self, name: str, query: "StreamingQuery", error: Exception) -> float:
        """Return the seconds before the restart of a failed query; PipelineError if it is not restarted."""
        checkpoint = read_checkpoint(self._state.checkpoint(name))
        batch = -1 if checkpoint is None else checkpoint.batch
        delay_s = self._restarts.failed(name, batch) if can_heal(error) else None
        if delay_s is None:
            count = self._restarts.count(name)
            after = f" (after {count} restart{'' if count == 1 else 's'})" if count else ""
            raise PipelineError(f"{name}: {in_words(error)}{after}") from error
        self._listener.restarting(
            name, str(query.runId), in_words(error), self._restarts.count(name), _EVENTS_TIMEOUT_S
        )
        return delay_s

    def _end(self, queries: Iterable["StreamingQuery"]) -> None:
        """Stop the queries after their current batches, so that the next run does not have to repeat them."""
        deadline = time.monotonic() + _BATCH_TIMEOUT_S
        for query in queries:
            try:
                current = _last_batch(query)
                while query.isActive and query.status["isTriggerActive"] and _last_batch(query) == current:
                    if time.monotonic() >= deadline:
                        logger.warning(
                            "%s: its batch was not finished within %.0f s; the next run repeats it",
                            query.name,
                            _BATCH_TIMEOUT_S,
                        )
                        break
                    if self._at_once.wait(_BATCH_POLL_S):
                        break
                query.stop()
            except Exception as error:  # noqa: BLE001  the other queries have to be stopped as well
                logger.warning("%s did not stop: %s", query.name, in_words(error))


def start(query: Query, checkpoint: StoragePath, *, to_the_end: bool) -> "StreamingQuery":
    """Start a query, with a count of the rows that it writes; PipelineError if Spark refuses it."""
    target, mode = query.sink.target, query.sink.mode
    if isinstance(target, Parquet) and target.directory is not None:
        claim_directory(target.directory, checkpoint)
    writer = query.frame.observe(WRITTEN, F.count(F.lit(1)).alias("rows")).writeStream.outputMode(mode)
    if query.writer.needs_batches(mode):
        writer = writer.foreachBatch(partial(_write, query.writer, checkpoint))
    else:
        writer = writer.format(query.writer.format).options(**query.writer.options)
    if isinstance(target, Parquet) and target.partition_by:
        writer = writer.partitionBy(*target.partition_by)
    every = None if to_the_end else query.sink.every
    return _started(writer, query.name, checkpoint, every, f"{query.name}, to {target.label}")


def _write(writer: SinkWriter, checkpoint: StoragePath, frame: "DataFrame", batch_id: int) -> None:
    writer.write(frame, Batch(read_query_id(checkpoint), batch_id))


def start_shared(
    name: str, records: "DataFrame", batches: SharedBatches, *, to_the_end: bool
) -> "StreamingQuery":
    """Start the query of several sinks, with the shortest of their intervals."""
    batches.failures.clear()
    sinks = [query.sink for query in batches.queries]
    every = [sink.every for sink in sinks if not sink.follows] or [sinks[0].every]
    jvm: Any = SparkContext._active_spark_context._jvm  # type: ignore[union-attr]  # noqa: SLF001
    trigger = jvm.org.apache.spark.sql.streaming.Trigger
    shortest = min(every, key=lambda interval: int(trigger.ProcessingTime(interval).intervalMs()))
    writer = records.writeStream.outputMode("append").foreachBatch(batches)
    return _started(writer, name, batches.checkpoint, None if to_the_end else shortest, name)


def _started(
    writer: "DataStreamWriter", name: str, checkpoint: StoragePath, every: str | None, label: str
) -> "StreamingQuery":
    """Start a stream that writes at an interval, or once to the current end of its sources."""
    trigger: dict[str, Any] = {"availableNow": True} if every is None else {"processingTime": every}
    try:
        return (
            writer.queryName(name)
            .option("checkpointLocation", checkpoint_url(checkpoint))
            .trigger(**trigger)
            .start()
        )
    except Exception as error:
        raise PipelineError(f"{label}: {in_words(error)}") from error


def can_heal(error: BaseException) -> bool:
    """Return whether a restart may help after the failure of a query.

    Spark passes errors of Python on as text, in which a traceback names the class of each error.
    """
    text = str(error)
    return _RAISED not in text and not any(name in text for name in _PERMANENT)


def _last_batch(query: "StreamingQuery") -> int:
    """Return the number of the last batch that is finished."""
    last = query.lastProgress
    return -1 if last is None else int(last.batchId)
