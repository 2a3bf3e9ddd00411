"""Would it run? Everything that can be known without running it: what is read, columns, and where they go."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.client.errors import ClientError
from headrace.client.wire.security import Security
from headrace.pipeline.builder import RECORD, Builder, Query
from headrace.pipeline.declaration import Pipeline, Sink, View
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.parquet_files import check_directory
from headrace.pipeline.reaching import look_at_delta, look_at_directory, look_at_iceberg
from headrace.pipeline.state import State
from headrace.pipeline.targets import Delta, Iceberg, Parquet, Topic
from headrace.pipeline.topics import partitions_of
from headrace.spark.cluster import Cluster
from headrace.spark.errors import SparkError
from headrace.spark.sink_options import SinkOptions, check_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at, and what came of it."""

    what: str
    good: bool
    says: str


class Checker:
    """Looks at every source, view and sink of one pipeline; what is wrong with one does not hide another."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, bootstrap: str, state: State) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._state = state
        self._builder = Builder(spark, pipeline, bootstrap, since_ms=state.since_ms)
        self._topics: dict[str, list[int]] | None = None  # None: no broker answers

    def findings(self) -> Iterator[Finding]:
        """All of them, in the order of the file."""
        yield _finding(f"cluster {self._bootstrap}", self._look_at_cluster)
        broken: set[str] = set()
        for name in self._pipeline.sources:
            found = _finding(f"source {name}", partial(self._look_at_source, name))
            broken |= set() if found.good else {name}
            yield found
        for view in self._pipeline.views.values():
            if not broken & set(self._pipeline.needed(view)):
                found = _finding(f"view {view.name}", partial(self._look_at_view, view))
                broken |= set() if found.good else {view.name}
                yield found
        for sink in self._pipeline.sinks.values():
            if not broken & {*sink.inputs, *self._pipeline.needed(sink)}:
                yield _finding(f"sink {sink.name}", partial(self._look_at_sink, sink))

    def _look_at_cluster(self) -> str:
        cluster = Cluster(self._bootstrap, Security.of(self._pipeline.client))
        try:
            self._topics = cluster.topics()
            brokers = cluster.brokers()
        finally:
            cluster.close()
        return f"{brokers} broker{'' if brokers == 1 else 's'}"

    def _look_at_source(self, name: str) -> str:
        source = self._pipeline.sources[name]
        columns = _columns(self._builder.rows(source))
        if self._topics is None:
            return columns
        return f"{partitions_of(source, self._bootstrap)} partitions of {source.topic}; {columns}"

    def _look_at_view(self, view: View) -> str:
        return _columns(self._builder.result(view))

    def _look_at_sink(self, sink: Sink) -> str:
        query = self._builder.of_sink(sink)
        _check_streaming(self._spark, query)
        target = sink.target
        if isinstance(target, Topic):
            return self._look_at_topic(target, query)
        if isinstance(target, Delta):
            return look_at_delta(query.options, query.frame.schema)
        if isinstance(target, Iceberg):
            return look_at_iceberg(query.options, query.frame.schema)
        if isinstance(target, Parquet) and target.directory is not None:
            found = look_at_directory(target.directory)
            check_directory(target.directory, self._state.checkpoint(query.name))
            return found
        return target.label

    def _look_at_topic(self, topic: Topic, query: Query) -> str:
        check_schema(query.frame.schema, SinkOptions.of(query.options))
        read = ",".join(self._pipeline.sources[each].topic for each in query.sources)
        if topic.name in [name.strip() for name in read.split(",")]:
            raise PipelineError(f"it reads topic {topic.name} and writes to it: that would never end")
        if self._topics is None:
            return f"topic {topic.name}"
        return f"topic {topic.name} {'is there' if topic.name in self._topics else 'will be created'}"


def _finding(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what=what, good=True, says=look())
    except (SparkError, ClientError, OSError) as error:
        return Finding(what=what, good=False, says=" ".join(in_words(error).split()))


def _columns(frame: Any) -> str:
    found = [each for each in frame.schema.fields if each.name != RECORD]
    return ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in found)


def _check_streaming(spark: "SparkSession", query: Query) -> None:
    """PipelineError if Spark would refuse to start it: an aggregation without a watermark, say."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001  Spark asks itself only when the query starts
    catalyst = jvm.org.apache.spark.sql.catalyst  # type: ignore[union-attr]
    modes = {"append": "Append", "update": "Update", "complete": "Complete"}
    mode = getattr(catalyst.streaming.InternalOutputModes, f"{modes[query.mode]}$")
    plan = query.frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    try:
        catalyst.analysis.UnsupportedOperationChecker.checkForStreaming(plan, getattr(mode, "MODULE$"))
    except Exception as error:
        raise PipelineError(in_words(error)) from error
