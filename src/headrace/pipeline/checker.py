"""Checks of a pipeline that does not run: the cluster, sources, columns, and whether sinks are writable."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from headrace.client.errors import ClientError
from headrace.client.wire.security import Security
from headrace.pipeline.builder import Builder, Query
from headrace.pipeline.declaration import Pipeline, Sink
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.expectations import RECORD
from headrace.pipeline.parquet_files import check_directory
from headrace.pipeline.state import PipelineState
from headrace.pipeline.streaming_plans import check_streaming
from headrace.pipeline.targets import Delta, Iceberg, Parquet, Topic
from headrace.pipeline.topics import partitions_of
from headrace.spark.errors import SparkError
from headrace.spark.merge.events import stored_schema
from headrace.spark.sink_options import SinkOptions, check_schema
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.tables.reader.cluster import ClusterConnections

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WILL: Final = "will be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    what: str
    good: bool
    says: str


class Checker:
    """Checks every source, view and sink of one pipeline; an error of one does not hide that of another."""

    def __init__(
        self, spark: "SparkSession", pipeline: Pipeline, bootstrap: str, state: PipelineState
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._state = state
        self._builder = Builder(spark, pipeline, bootstrap, since_ms=state.since_ms)
        self._topics: dict[str, list[int]] | None = None  # None: no broker is reachable

    def findings(self) -> Iterator[Finding]:
        """Yield the results in the order of the declarations."""
        yield _finding(f"cluster {self._bootstrap}", self._check_cluster)
        pipeline, steps = self._pipeline, self._builder.steps
        broken: set[str] = set()
        checks: list[tuple[str, str, set[str], Callable[[], str]]] = [
            ("source", name, set(), partial(self._check_source, name)) for name in pipeline.sources
        ]
        for view in pipeline.views.values():
            columns = partial(lambda view: _columns(steps.result(view)), view)
            checks.append(("view", view.name, set(pipeline.needed(view)), columns))
        for sink in pipeline.sinks.values():
            needs = {*sink.inputs, *pipeline.needed(sink)}
            checks.append(("sink", sink.name, needs, partial(self._check_sink, sink)))
        for kind, name, needs, check in checks:
            if not broken & needs:
                finding = _finding(f"{kind} {name}", check)
                broken |= set() if finding.good else {name}
                yield finding
        if broken:
            return
        try:
            division = self._builder.division(self._state)
        except PipelineError as error:
            yield Finding(what="expectations", good=False, says=str(error))
            return
        for query in division.shared:
            if query.sinks:
                says = f"reads {query.source} once for {', '.join(query.sinks)}"
                yield Finding(what=f"query {query.name}", good=True, says=says)

    def _check_cluster(self) -> str:
        with closing(ClusterConnections(self._bootstrap, Security.of(self._pipeline.client))) as cluster:
            self._topics = cluster.topics()
            brokers = cluster.brokers()
        return f"{brokers} broker{'' if brokers == 1 else 's'}"

    def _check_source(self, name: str) -> str:
        source = self._pipeline.sources[name]
        columns = _columns(self._builder.steps.rows(source))
        if self._topics is None:
            return columns
        return f"{partitions_of(source, self._bootstrap)} partitions of {source.topic}; {columns}"

    def _check_sink(self, sink: Sink) -> str:
        query, target = self._builder.of_sink(sink), sink.target
        check_streaming(query.frame, sink.mode)
        if isinstance(target, Topic):
            check_schema(query.frame.schema, SinkOptions.of(query.writer.options))
            read = ",".join(self._pipeline.sources[source].topic for source in self._pipeline.needed(sink))
            if target.name in [name.strip() for name in read.split(",")]:
                raise PipelineError(f"it reads topic {target.name} and writes to it: that would never end")
            if self._topics is not None:
                return f"{target.label} {'exists' if target.name in self._topics else _WILL}"
        elif isinstance(target, Delta | Iceberg):
            return _check_table(query, target)
        elif isinstance(target, Parquet) and target.directory is not None:
            _check_writable(target.directory)
            check_directory(target.directory, self._state.checkpoint(query.name))
            return f"directory {target.directory} {'exists' if target.directory.exists() else _WILL}"
        return target.label


def _finding(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what=what, good=True, says=check())
    except (SparkError, ClientError, OSError) as error:
        return Finding(what=what, good=False, says=" ".join(in_words(error).split()))


def _columns(frame: Any) -> str:
    fields = [field for field in frame.schema.fields if field.name != RECORD]
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def _check_writable(path: Path) -> None:
    """Raise OSError if files cannot be written to a directory, which may not exist yet."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"{existing} is not writable")


def _check_table(query: Query, target: Delta | Iceberg) -> str:
    """Return the state of a table; SparkError if the rows of a query cannot be written to it."""
    options: Any
    merges: Any
    tables: Any
    if isinstance(target, Delta):
        needed("deltalake", "a Delta table")
        from headrace.spark.merge import delta as merges  # noqa: PLC0415
        from headrace.spark.tables.delta import table as tables  # noqa: PLC0415

        options = DeltaOptions.of(query.writer.options)
        label = f"Delta table {options.path}"
        if "://" not in options.path:
            _check_writable(Path(options.path))
    else:
        needed("pyiceberg.catalog", "an Iceberg table")
        from headrace.spark.merge import iceberg as merges  # noqa: PLC0415
        from headrace.spark.tables.iceberg import table as tables  # noqa: PLC0415

        options, label = IcebergOptions.of(query.writer.options), target.label
    schema, upserts = query.frame.schema, query.writer.upserts
    if upserts is not None:
        options, schema = options.requiring(upserts.columns_of_table), stored_schema(schema, upserts)
    if not tables.exists(options):
        tables.check_new(options, schema)
        return f"{label} {_WILL}"
    table = tables.load_table(options)
    changes = tables.check_table(table, schema, options)
    if upserts is not None:
        merges.rewritable_files(table)
    how = f"will change: {', '.join(map(str, changes))}" if changes else "the columns fit"
    return f"{label} exists, and {how}"
