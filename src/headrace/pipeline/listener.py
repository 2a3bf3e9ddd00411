"""The progress of a pipeline's queries, from the events of Spark."""

import json
import logging
import threading
import time
from collections.abc import Sequence

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from headrace.pipeline.errors import in_words
from headrace.pipeline.progress import Observer, Progress, of_batch

logger = logging.getLogger(__name__)


class Listener(StreamingQueryListener):
    """Notifies the observers of one pipeline. Spark calls it from its own threads, with a delay."""

    def __init__(self, pipeline: str, observers: Sequence[Observer]) -> None:
        super().__init__()
        self._pipeline = pipeline
        self._observers = observers
        self._names: dict[str, str] = {}  # of queries by run id
        self._changed = threading.Condition()

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
            self._notify(self._event(name, "started"))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        if str(event.progress.runId) in self._names:
            self._notify(of_batch(self._pipeline, json.loads(event.progress.json)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        name = self._names.get(str(event.runId))
        if name is not None:
            self._notify(self._event(name, "idle"))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        name = self._names.get(str(event.runId))
        if name is None:
            return
        if event.exception:
            self._notify(self._event(name, "failed", in_words(RuntimeError(event.exception))))
        else:
            self._notify(self._event(name, "ended"))
        with self._changed:
            del self._names[str(event.runId)]
            self._changed.notify_all()

    def _event(self, name: str, event: str, error: str = "") -> Progress:
        now_ms = time.time_ns() // 1_000_000
        return Progress(pipeline=self._pipeline, query=name, event=event, at_ms=now_ms, error=error)

    def _notify(self, progress: Progress) -> None:
        for observer in self._observers:
            try:
                observer(progress)
            except Exception as error:  # noqa: BLE001  who looks on must not end a query
                logger.warning("%s: an observer failed: %s", progress.query, error)
