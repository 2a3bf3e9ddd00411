"""Spark queries of a pipeline's declarations: one per sink, and one per source with dead letters."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812

from headrace.pipeline.declaration import BadRows, Pipeline, Sink, Source, View
from headrace.pipeline.decoders import Decoded, Decoder, Following, Framed, settle
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.initial_offsets import with_initial_offsets
from headrace.pipeline.state import State
from headrace.spark.sink_options import HEADERS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RECORD: Final = "_record"
KEY: Final = "_key"
_REASON: Final = "_reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query that has not been started: the rows of a sink, and the format of its target."""

    name: str
    sink: Sink
    frame: "DataFrame"
    format: str
    options: dict[str, str] = field(repr=False)  # may contain passwords


class Builder:
    """Builds the queries of one pipeline. `since_ms` replaces where the sources start."""

    def __init__(
        self,
        spark: "SparkSession",
        pipeline: Pipeline,
        bootstrap: str,
        *,
        since_ms: int | None = None,
        state: State | None = None,  # stores the initial offsets of sources
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._bootstrap = bootstrap
        self._since_ms = since_ms
        self._state = state
        self._options: dict[str, dict[str, str]] = {}  # of sources
        self._decoders: dict[str, tuple[Decoder, Decoder | None]] = {}  # of their values and keys

    def queries(self) -> Iterator[Query]:
        return map(self.of_sink, self._pipeline.queries())

    def is_outdated(self) -> bool:
        """Return whether a source has to be decoded by a newer version of its schema."""
        used: list[object] = [each for pair in self._decoders.values() for each in pair]
        return any(isinstance(each, Following) and each.is_outdated() for each in used)

    # -- rows ----------------------------------------------------------------------------------

    def records(self, source: Source) -> "DataFrame":
        """Return the undecoded records of a source."""
        if source.name not in self._options:
            options = source.reading(self._bootstrap, self._since_ms)
            if self._state is not None:
                options = with_initial_offsets(self._state, source.name, options)
            self._options[source.name] = options
        options = self._options[source.name]
        return self._spark.readStream.format("headrace").options(**options).load()

    def rows(self, source: Source) -> "DataFrame":
        """Return the decoded records of a source, with their origin in the column `_record`."""
        records, decoded = self._decoded(source)
        reason = decoded.reason
        if source.bad_rows is BadRows.FAIL:
            origin = F.concat("topic", F.lit("-"), "partition", F.lit(" offset "), "offset")
            message = F.concat(F.lit(f"source {source.name}: "), origin, F.lit(": "), reason)
            reason = F.when(reason.isNotNull(), F.raise_error(message).cast("string"))
        columns = [column.alias(name) for name, column in decoded.columns.items()]
        fields = ("topic", "partition", "offset", "timestamp", "key", "headers")
        rows = records if decoded.skipped is None else records.where(~decoded.skipped)
        found = rows.select(*columns, F.struct(*fields).alias(RECORD), reason.alias(_REASON))
        return found.where(F.col(_REASON).isNull()).drop(_REASON)

    def _decoded(self, source: Source) -> "tuple[DataFrame, Decoded]":
        """Return the records of a source and their columns; schemas are looked up once for all queries."""
        if source.name not in self._decoders:
            key = None if source.key is None else settle(source.key, source.topic, "key")
            self._decoders[source.name] = settle(source.decode, source.topic), key
        of_values, of_keys = self._decoders[source.name]
        records = self.records(source)
        found = of_values.decode(_framed(of_values, records, "value"))
        if of_keys is not None:
            found = _with_key(found, of_keys.decode(_framed(of_keys, records, "key")), records["key"])
        staged = [column.alias(name) for name, column in found.staged.items()]
        return (records.select("*", *staged) if staged else records), found

    def result(self, step: Sink | View) -> "DataFrame":
        """Return the result of a function."""
        pipeline = self._pipeline
        arguments = []
        for name in step.inputs:
            source = pipeline.sources.get(name)
            arguments.append(self.result(pipeline.views[name]) if source is None else self.rows(source))
        assert step.function is not None, step
        try:
            frame = step.function(*arguments)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{step.name}(): {in_words(error)}") from error
        if not hasattr(frame, "writeStream"):
            raise PipelineError(f"{step.name}() has to return a DataFrame, not {type(frame).__name__}")
        return frame

    # -- queries -------------------------------------------------------------------------------

    def of_sink(self, sink: Sink) -> Query:
        format_, options = sink.target.format(self._bootstrap)
        if format_ == "headrace":
            options = {**self._pipeline.client_options, **options}
        try:
            rows = self._dead_letters(sink) if sink.function is None else self.result(sink)
            frame = sink.target.shape(rows)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(f"{sink.name}(), to {sink.target.label}: {in_words(error)}") from error
        name = self._pipeline.query_name(sink.name)
        return Query(name=name, sink=sink, frame=frame, format=format_, options=options)

    def _dead_letters(self, sink: Sink) -> "DataFrame":
        """Return the undecodable records of a source; their headers have the reason and the origin."""
        (name,) = sink.inputs
        records, decoded = self._decoded(self._pipeline.sources[name])
        bad = records.select("*", decoded.reason.alias(_REASON)).where(F.col(_REASON).isNotNull())
        added = F.array(
            _header("reason", F.col(_REASON)),
            _header("pipeline", F.lit(self._pipeline.name)),
            _header("source", F.lit(name)),
            _header("topic", F.col("topic")),
            _header("partition", F.col("partition")),
            _header("offset", F.col("offset")),
            _header("timestamp", F.unix_millis("timestamp")),
        )
        headers = F.concat(added, F.coalesce(F.col("headers"), F.array().cast(HEADERS)))
        return bad.select("key", "value", headers.alias("headers"))


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
    )


def _header(name: str, value: "Column") -> "Column":
    return F.struct(F.lit(name).alias("key"), value.cast("string").cast("binary").alias("value"))
