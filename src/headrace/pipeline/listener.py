"""The progress of a pipeline's queries, from the events of Spark."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headrace.client.errors import ClientError
from headrace.pipeline.errors import in_words
from headrace.pipeline.progress import Observer, Progress, of_batch
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import from_json

if TYPE_CHECKING:
    from headrace.pipeline.fan_out import SharedBatches

logger = logging.getLogger(__name__)


class Listener(StreamingQueryListener):
    """Notifies the observers of one pipeline. Spark calls it from its own threads, with a delay."""

    def __init__(
        self,
        pipeline: str,
        observers: Sequence[Observer],
        graph: Sequence[Mapping[str, Any]] = (),
        latest: Callable[[Iterable[TopicPartition]], Mapping[TopicPartition, int]] | None = None,
    ) -> None:
        """`graph` is reported with the start of every query; `latest` returns the ends of partitions."""
        super().__init__()
        self._latest = latest
        self._graph = graph
        self._pipeline = pipeline
        self._observers = observers
        self._names: dict[str, str] = {}  # of queries by run id
        self._shared: dict[str, SharedBatches] = {}  # by the name of the query
        self._restarts: dict[str, int] = {}  # by the name of the query
        self._changed = threading.Condition()
        self.outdated: Callable[[], bool] = lambda: False
        """Whether queries fail only because they have to be restarted with a newer version of a schema."""

    def share(self, name: str, batches: "SharedBatches") -> None:
        """Report the events of a query as those of the sinks that share it."""
        self._shared[name] = batches

    def restarting(self, name: str, run_id: str, error: str, restarts: int, timeout_s: float) -> None:
        """Report that a query has failed and will be restarted, after Spark's event of the failure."""
        with self._changed:
            self._changed.wait_for(lambda: run_id not in self._names, timeout_s)
        self._restarts[name] = restarts
        for sink in self._sinks(name):
            self._notify(self._event(sink, "restarting", error, restarts))

    def stalled(self, name: str, why: str) -> None:
        """Report that the batch of a query seems to hang."""
        for sink in self._sinks(name):
            self._notify(self._event(sink, "stalled", why))

    def lost(self, why: str) -> None:
        """Report that all queries have failed, without an event of Spark, whose Java has ended."""
        with self._changed:
            names, self._names = list(self._names.values()), {}
        for sink in [sink for name in names for sink in self._sinks(name)]:
            self._notify(self._event(sink, "failed", why))

    def wait(self, timeout_s: float) -> None:
        """Wait for the last event of every query, and so for those of the last batches."""
        with self._changed:
            if not self._changed.wait_for(lambda: not self._names, timeout_s):
                logger.warning("Spark has not reported the end of %s", ", ".join(self._names.values()))

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        name = event.name or ""
        if name.startswith(f"{self._pipeline}."):
            with self._changed:
                self._names[str(event.runId)] = name
            for sink in self._sinks(name):
                started = self._event(sink, "started", restarts=self._restarts.get(name, 0))
                self._notify(replace(started, graph=self._graph))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        name = self._names.get(str(event.progress.runId))
        if name is None:
            return
        progress = self._with_lag(of_batch(self._pipeline, json.loads(event.progress.json)))
        shared = self._shared.get(name)
        if shared is None:
            self._notify(progress)
            return
        for sink in shared.sinks:
            result = shared.result(progress.batch, sink)
            self._notify(progress.of_sink(sink, result.written, result.broken, result.newer))

    def _with_lag(self, progress: Progress) -> Progress:
        """Return progress with the lag of a repeated batch, for which Spark has not asked its sources."""
        if self._latest is None or progress.lags or not progress.offsets:
            return progress
        read = from_json(progress.offsets)
        try:
            latest = self._latest(read)
        except (ClientError, OSError) as error:
            logger.warning("%s: the lag of batch %d is not known: %s", progress.query, progress.batch, error)
            return progress
        lags = {str(each): max(0, end - read[each]) for each, end in sorted(latest.items())}
        return replace(progress, lag=sum(lags.values()), lags=lags)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        name = self._names.get(str(event.runId))
        if name is not None:
            for sink in self._sinks(name):
                self._notify(self._event(sink, "idle"))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        name = self._names.get(str(event.runId))
        if name is None:
            return
        error = in_words(RuntimeError(event.exception)) if event.exception else ""
        is_planned = bool(error) and self.outdated()
        # If sinks have failed, the others have ended with the query; otherwise the source has failed.
        failures = self._shared[name].failures if name in self._shared else {}
        for sink in self._sinks(name):
            failed = failures.get(sink, "") if failures and error else error
            if is_planned:
                self._notify(self._event(sink, "restarting", "a schema has a newer version"))
            else:
                self._notify(self._event(sink, "failed" if failed else "ended", failed))
        with self._changed:
            del self._names[str(event.runId)]
            self._changed.notify_all()

    def _sinks(self, name: str) -> list[str]:
        """Return the sinks of a query, which are the names that observers know."""
        return self._shared[name].sinks if name in self._shared else [name]

    def _event(self, name: str, event: str, error: str = "", restarts: int = 0) -> Progress:
        now_ms = time.time_ns() // 1_000_000
        return Progress(
            pipeline=self._pipeline, query=name, event=event, at_ms=now_ms, error=error, restarts=restarts
        )

    def _notify(self, progress: Progress) -> None:
        for observer in self._observers:
            try:
                observer(progress)
            except Exception as error:  # noqa: BLE001  who looks on must not end a query
                logger.warning("%s: an observer failed: %s", progress.query, error)
