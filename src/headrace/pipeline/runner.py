"""Running a pipeline: its queries side by side, what they tell, and an end when somebody wants one."""

import logging
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pyspark import cloudpickle

from headrace.pipeline.builder import Builder, Query
from headrace.pipeline.declaration import Pipeline, Sink, View
from headrace.pipeline.errors import PipelineError, in_words, is_slow_start
from headrace.pipeline.listener import Listener
from headrace.pipeline.loader import MODULE
from headrace.pipeline.progress import Observer
from headrace.pipeline.starting import start
from headrace.pipeline.state import State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_LOOK_S: Final = 0.2
_BATCH_S: Final = 60.0  # how long the end of a batch is waited for
_BETWEEN_S: Final = 0.02
_TOLD_S: Final = 10.0
_ATTEMPTS: Final = 5  # to start a query whose Python process was too slow to start
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
                self._wait(queries, started, to_the_end=to_the_end)
            finally:
                self._end(started.values())
                self._state.have_begun(each.name for each in queries)
                self._listener.wait(_TOLD_S)
                self._spark.streams.removeListener(self._listener)

    def _wait(
        self, queries: Iterable[Query], started: "dict[str, StreamingQuery]", *, to_the_end: bool
    ) -> None:
        left = {each.name: each for each in queries}
        attempts = Counter(left.keys())
        have_begun = False
        while left and not self._stopping.is_set():
            have_begun = have_begun or self._state.have_begun(started)
            for name, query in list(left.items()):
                if started[name].isActive:
                    continue
                error = started[name].exception()
                if error is None:
                    del left[name]
                elif is_slow_start(error) and attempts[name] < _ATTEMPTS:
                    attempts[name] += 1
                    started[name] = start(query, self._state.checkpoint(name), to_the_end=to_the_end)
                else:
                    raise PipelineError(f"{name}: {in_words(error)}") from error
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
    """Let executors have the functions of the pipeline's file, and of those beside it: they have no files."""
    steps: list[Sink | View] = [*pipeline.sinks.values(), *pipeline.views.values()]
    modules = (sys.modules.get(each.function.__module__) for each in steps)
    files = {each.__file__ for each in modules if each is not None and each.__name__.startswith(MODULE)}
    directories = {Path(file).parent for file in files if file is not None}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if file is not None and Path(file).parent in directories:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
