"""Checks of a pipeline that does not run: the cluster, sources, columns, and whether sinks are writable."""

import os
from collections.abc import Callable, Iterator, Sequence
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
from headrace.pipeline.state import State
from headrace.pipeline.streaming_plans import check_streaming
from headrace.pipeline.targets import Delta, Iceberg, Parquet, Topic
from headrace.pipeline.topics import partitions_of
from headrace.spark.errors import SparkError
from headrace.spark.merge.events import stored_schema
from headrace.spark.sink_options import SinkOptions, check_schema
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import check_partitioning, storable
from headrace.tables.reader.cluster import Cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.tables.evolution import Change

_EXISTS: Final = "exists, and the columns fit"
_WILL: Final = "will be created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check."""

    what: str
    good: bool
    says: str


class Checker:
    """Checks every source, view and sink of one pipeline; an error of one does not hide that of another."""

    def __init__(self, spark: "SparkSession", pipeline: Pipeline, bootstrap: str, state: State) -> None:
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
        if not broken:
            yield from self._shared()

    def _shared(self) -> Iterator[Finding]:
        """Yield the queries that several sinks share."""
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
        with closing(Cluster(self._bootstrap, Security.of(self._pipeline.client))) as cluster:
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
            return self._check_topic(sink, target, query)
        if isinstance(target, Delta):
            return _check_delta(query)
        if isinstance(target, Iceberg):
            return _check_iceberg(query)
        if isinstance(target, Parquet) and target.directory is not None:
            found = _check_writable(target.directory)
            check_directory(target.directory, self._state.checkpoint(query.name))
            return found
        return target.label

    def _check_topic(self, sink: Sink, topic: Topic, query: Query) -> str:
        check_schema(query.frame.schema, SinkOptions.of(query.writer.options))
        read = ",".join(self._pipeline.sources[source].topic for source in self._pipeline.needed(sink))
        if topic.name in [name.strip() for name in read.split(",")]:
            raise PipelineError(f"it reads topic {topic.name} and writes to it: that would never end")
        if self._topics is None:
            return f"topic {topic.name}"
        return f"topic {topic.name} {'exists' if topic.name in self._topics else _WILL}"


def _finding(what: str, check: Callable[[], str]) -> Finding:
    try:
        return Finding(what=what, good=True, says=check())
    except (SparkError, ClientError, OSError) as error:
        return Finding(what=what, good=False, says=" ".join(in_words(error).split()))


def _columns(frame: Any) -> str:
    fields = [field for field in frame.schema.fields if field.name != RECORD]
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def _check_writable(path: Path) -> str:
    """Return the state of a directory; OSError if files cannot be written to it."""
    existing = path
    while not existing.exists():
        existing = existing.parent
    if not existing.is_dir():
        raise NotADirectoryError(f"{existing} is not a directory")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(f"{existing} is not writable")
    return f"directory {path} {'exists' if path.exists() else _WILL}"


def _existing(changes: "Sequence[Change]") -> str:
    return f"exists, and will change: {', '.join(map(str, changes))}" if changes else _EXISTS


def _check_delta(query: Query) -> str:
    """Return the state of a Delta table; SparkError if the rows of a query cannot be written to it."""
    deltalake = needed("deltalake", "a Delta table")
    from headrace.spark.merge.delta import rewritable_files  # noqa: PLC0415
    from headrace.spark.tables.delta.table import check_table, load_table  # noqa: PLC0415

    options, schema, upserts = DeltaOptions.of(query.writer.options), query.frame.schema, query.writer.upserts
    if upserts is not None:
        options, schema = options.requiring(upserts.columns_of_table), stored_schema(schema, upserts)
    if "://" not in options.path:
        _check_writable(Path(options.path))
    if deltalake.DeltaTable.is_deltatable(options.path, dict(options.storage)):
        table = load_table(options)
        changes = check_table(table, schema, options)
        if upserts is not None:
            rewritable_files(table)
        return f"Delta table {options.path} {_existing(changes)}"
    check_partitioning(options.partition_by, storable(schema))
    return f"Delta table {options.path} {_WILL}"


def _check_iceberg(query: Query) -> str:
    """Return the state of an Iceberg table; SparkError if the rows of a query cannot be written to it."""
    catalogs = needed("pyiceberg.catalog", "an Iceberg table")
    from headrace.spark.merge.iceberg import check_rewritable  # noqa: PLC0415
    from headrace.spark.tables.iceberg.table import check_new, check_table, load_table  # noqa: PLC0415

    options, schema, upserts = (
        IcebergOptions.of(query.writer.options),
        query.frame.schema,
        query.writer.upserts,
    )
    if upserts is not None:
        options, schema = options.requiring(upserts.columns_of_table), stored_schema(schema, upserts)
    try:
        exists = catalogs.load_catalog(options.catalog_name, **options.catalog).table_exists(options.table)
    except Exception as error:  # catalogs are plugins with their own exceptions
        raise PipelineError(f"the catalog of {options.table} cannot be reached: {error}") from error
    if exists:
        table = load_table(options)
        changes = check_table(table, schema, options)
        if upserts is not None:
            check_rewritable(table)
        return f"Iceberg table {options.table} {_existing(changes)}"
    check_new(options, schema)
    return f"Iceberg table {options.table} {_WILL}"
