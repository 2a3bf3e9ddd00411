"""Spark queries of a pipeline's declarations: one for a sink, or one that several sinks share."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.declaration import BadRows, Pipeline, Sink, Source
from headrace.pipeline.decoders import Decoded, Decoder, Following, Framed, settle
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.expectations import RECORD
from headrace.pipeline.initial_offsets import with_initial_offsets
from headrace.pipeline.shared_queries import Division, SharedQuery, divide
from headrace.pipeline.state import PipelineState
from headrace.pipeline.steps import NEWER, REASON, ROW, VALUE, Steps
from headrace.pipeline.streaming_plans import check_streaming, is_repeatable, is_stateless
from headrace.pipeline.targets import Delta, Iceberg
from headrace.spark.batch import Batch
from headrace.spark.launcher import is_remote
from headrace.spark.merge.merge import merge_batch
from headrace.spark.merge.upsert import Upsert
from headrace.spark.sink_options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

KEY = "_key"
_FIELDS = ("topic", "partition", "offset", "timestamp", "key", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkWriter:
    """Writes the batches of a sink. It has no DataFrame, because Spark Connect pickles it."""

    format: str
    options: dict[str, str] = field(repr=False)  # may contain passwords
    upserts: Upsert | None  # the rules by which rows are merged into a table; None: they are appended

    def needs_batches(self, mode: str) -> bool:
        """Return whether a stream cannot be written by Spark itself, whose sinks in Python only append."""
        return self.upserts is not None or (mode != "append" and self.format == "headrace")

    def write(self, rows: "DataFrame", batch: Batch) -> bool:
        """Write a batch; return False if the sink had it and Spark has not computed its rows."""
        if self.upserts is not None:
            return merge_batch(self.format, self.options, self.upserts, rows, batch)
        options: Mapping[str, str] = self.options
        if self.format != "headrace" or SinkOptions.of(options).exactly_once:
            options = {**options, "txnAppId": batch.query_id, "txnVersion": str(batch.batch_id)}
        rows.write.format(self.format).options(**options).mode("append").save()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query that has not been started: the rows of a sink, and how they are written."""

    name: str
    sink: Sink
    frame: "DataFrame"
    writer: SinkWriter


class Builder:
    """Builds the queries of one pipeline. `since_ms` replaces where the sources start."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        bootstrap: str,
        *,
        since_ms: int | None = None,
        state: PipelineState | None = None,  # stores the initial offsets of sources
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._since_ms = since_ms
        self._state = state
        self._options: dict[str, dict[str, str]] = {}  # of sources
        self._decoders: dict[str, tuple[Decoder, Decoder | None]] = {}  # of their values and keys
        self._queries: dict[str, Query] = {}
        self.steps = Steps(pipeline, self.decoded)

    def is_outdated(self) -> bool:
        """Return whether a source has to be decoded by a newer version of its schema."""
        used: list[object] = [decoder for pair in self._decoders.values() for decoder in pair]
        return any(isinstance(decoder, Following) and decoder.is_outdated() for decoder in used)

    def decoded(self, source: Source, initial: Mapping[str, Any] | None = None) -> "DataFrame":
        """Return the records of a source with the columns that `Steps` expects.

        `initial` are the offsets where a new query starts.
        """
        if source.name not in self._options:
            options = source.reading(self._bootstrap, self._since_ms)
            if self._state is not None:
                options = with_initial_offsets(self._state, source.name, options)
            self._options[source.name] = options
        options = self._options[source.name]
        if initial is not None:
            options = {**options, "initialOffsets": json.dumps(initial)}
        return self.decode(source, self._spark.readStream.format("headrace").options(**options).load())

    def decode(self, source: Source, records: "DataFrame") -> "DataFrame":
        """Return records with the columns that `Steps` expects."""
        if source.name not in self._decoders:  # schemas are looked up once for all queries
            key = None if source.key is None else settle(source.key, source.topic, "key")
            self._decoders[source.name] = settle(source.decode, source.topic), key
        of_values, of_keys = self._decoders[source.name]
        decoded = of_values.decode(_framed(of_values, records, "value"))
        if of_keys is not None:
            decoded = _with_key(decoded, of_keys.decode(_framed(of_keys, records, "key")), records["key"])
        if decoded.staged:
            records = records.select("*", *(column.alias(name) for name, column in decoded.staged.items()))
        reason = decoded.reason
        if source.bad_rows is BadRows.FAIL:
            origin = F.concat("topic", F.lit("-"), "partition", F.lit(" offset "), "offset")
            message = F.concat(F.lit(f"source {source.name}: "), origin, F.lit(": "), reason)
            reason = F.when(reason.isNotNull(), F.raise_error(message).cast("string"))
        columns = [column.alias(name) for name, column in decoded.columns.items()]
        rows = records if decoded.skipped is None else records.where(~decoded.skipped)
        return rows.select(
            F.struct(*columns).alias(ROW),
            F.struct(*_FIELDS).alias(RECORD),
            reason.alias(REASON),
            F.when(decoded.reason.isNotNull(), F.col("value")).alias(VALUE),
            *([] if decoded.newer is None else [decoded.newer.alias(NEWER)]),
        )

    def queries(self) -> Iterator[Query]:
        return map(self.of_sink, self._pipeline.queries())

    def of_sink(self, sink: Sink, initial: Mapping[str, Any] | None = None) -> Query:
        """Return the query of a sink; `initial` are the offsets where it starts if it is new."""
        if initial is not None:
            return self._of_sink(sink, Steps(self._pipeline, partial(self.decoded, initial=initial)))
        if sink.name not in self._queries:
            self._queries[sink.name] = self._of_sink(sink, self.steps)
        return self._queries[sink.name]

    def _of_sink(self, sink: Sink, steps: Steps) -> Query:
        format_, options = sink.target.format(self._bootstrap)
        if format_ == "headrace":
            options = {**self._pipeline.client_options, **options}
        upserts = sink.target.upserts if isinstance(sink.target, Delta | Iceberg) else None
        writer = SinkWriter(format=format_, options=options, upserts=upserts)
        name = self._pipeline.query_name(sink.name)
        return Query(name=name, sink=sink, frame=steps.written(sink), writer=writer)

    def division(self, state: PipelineState) -> Division:
        """Return which sinks share a query; Spark's plans tell for which of them it keeps no state.

        On Spark Connect none do: it has no plans to look at, and cannot pickle what a shared query needs.
        """
        sharing = state.sharing
        division = divide(
            self._pipeline,
            sharing.queries,
            sharing.left,
            has_run=state.has_run,
            is_stateless=lambda sink: not is_remote(self._spark) and is_stateless(self.of_sink(sink).frame),
        )
        if not is_remote(self._spark):
            self._check_quarantines(division)
        return division

    def _check_quarantines(self, division: Division) -> None:
        """Raise PipelineError if a row might be in a sink and in quarantine, or in neither.

        That happens if queries judge the same row at different times, by a condition on the current time.
        """
        for quarantine in self._pipeline.queries():
            if (step := quarantine.quarantine_of) is None:
                continue
            query = division.query_of(quarantine.name)
            apart = [
                sink.name
                for sink in self._pipeline.queries()
                if step in self._pipeline.steps_of(sink)
                and (query is None or division.query_of(sink.name) != query)
            ]
            if apart and not is_repeatable(self.steps.quarantined(step)):
                raise PipelineError(
                    f"{step}: rows are quarantined by a condition on the current time or on random values, "
                    f"and {', '.join(apart)} would evaluate it again, in another query than "
                    f"{quarantine.name}. Use _record.timestamp instead of the current time"
                )

    def sinks_of(self, shared: SharedQuery) -> list[Query]:
        """Return the queries of the sinks that share one; their frames are those of the stream."""
        queries = [self.of_sink(sink) for sink in self._pipeline.queries() if sink.name in shared.sinks]
        for query in queries:
            check_streaming(query.frame, query.sink.mode)  # a batch by itself could do more than a stream
        return queries


def _framed(decoder: Decoder, records: "DataFrame", part: str) -> "Column":
    given = records[part]
    return decoder.framed(given, records["headers"]) if isinstance(decoder, Framed) else given


def _with_key(value: Decoded, key: Decoded, given: "Column") -> Decoded:
    """Add the column of the key: a struct, or a value if the key is not a record."""
    parts = [column.alias(name) for name, column in key.columns.items()]
    whole = key.columns["value"] if list(key.columns) == ["value"] else F.struct(*parts)
    return Decoded(
        {**value.columns, KEY: F.when(given.isNotNull(), whole)},
        F.coalesce(value.reason, F.concat(F.lit("its key: "), key.reason)),
        {**value.staged, **key.staged},
        value.skipped,
        value.newer if key.newer is None else key.newer if value.newer is None else value.newer | key.newer,
    )
