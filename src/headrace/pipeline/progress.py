"""The progress of queries, as Spark reports it after every batch, and its totals."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from headrace.pipeline.expectations import METRIC, Broken
from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import from_json, to_json
from headrace.spark.position import Position

TOPIC: Final = "_headrace_pipelines"
"""The topic with the history of progress, keyed by query."""
RETENTION_MS: Final = 7 * 24 * 3600 * 1000
"""Its retention."""
WRITTEN: Final = "written"
"""The name of the observed metric of Spark that counts the rows a batch writes."""
NEWER_METRIC: Final = "newer "
"""The prefix of the metrics that count records with a newer schema than the columns, by source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A batch of a query, or the start or end of the query."""

    pipeline: str
    query: str
    event: str  # started, batch, idle, stalled, ended, failed, restarting
    at_ms: int
    run: str = ""
    batch: int = -1
    rows: int = 0
    rows_per_s: float = 0.0
    processed_per_s: float = 0.0
    written: int = 0
    written_per_s: float = 0.0
    took_ms: int = 0
    lag: int = 0
    lags: Mapping[str, int] = field(default_factory=dict)  # by partition: "orders-0"
    offsets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    state_rows: int = 0
    state_bytes: int = 0
    late_rows: int = 0  # dropped because they were older than the watermark
    newer_rows: int = 0  # records of a schema that is newer than the columns
    watermark: str = ""
    error: str = ""
    restarts: int = 0  # of the query in this run
    shared: str = ""  # the query, if several sinks share it
    graph: Sequence[Mapping[str, Any]] = field(default_factory=list)  # of the pipeline, when it starts
    broken: Broken = field(default_factory=dict)  # expectations: rows that broke them, by step and name

    def of_sink(self, sink: str, written: int, broken: Broken, newer: int) -> "Progress":
        """Return the progress of a shared query as that of one of its sinks, with the rows it has written."""
        span_s = self.rows / self.rows_per_s if self.rows and self.rows_per_s else self.took_ms / 1000
        per_s = round(written / span_s, 1) if span_s else 0.0
        return replace(
            self,
            query=sink,
            shared=self.query,
            written=written,
            written_per_s=per_s,
            broken=broken,
            newer_rows=newer,
        )

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Progress":
        known = cls.__dataclass_fields__
        return cls(**{name: value for name, value in json.loads(data).items() if name in known})


def of_batch(pipeline: str, progress: Mapping[str, Any], *, event: str = "batch") -> Progress:
    """Return the progress of a batch from Spark's JSON."""
    offsets: dict[TopicPartition, int] = {}
    latest: dict[TopicPartition, int] = {}
    counted = progress.get("numInputRows", 0)
    rows = counted
    for source in progress.get("sources", ()):
        ends = _offsets(source.get("endOffset"))
        offsets |= ends
        latest |= _offsets(source.get("latestOffset"))
        if ends and (twice := source.get("numInputRows", 0) - _records(source, ends)) > 0:
            rows -= twice  # Spark counts the rows of a task again if its result was lost and is computed anew
    lags = {str(each): max(0, end - offsets.get(each, end)) for each, end in sorted(latest.items())}
    operators = progress.get("stateOperators", ())
    rows_per_s = _number(progress.get("inputRowsPerSecond"))
    metrics = progress.get("observedMetrics", {})
    took_ms = progress.get("batchDuration") or progress.get("durationMs", {}).get("triggerExecution", 0)
    written = int(_number(metrics.get(WRITTEN, {}).get("rows")))
    # Spark's rate is measured from one batch to the next; a first batch has only its duration.
    span_s = counted / rows_per_s if counted and rows_per_s else took_ms / 1000
    processed_per_s = _number(progress.get("processedRowsPerSecond"))
    return Progress(
        pipeline=pipeline,
        query=progress.get("name") or progress["id"],
        event=event,
        at_ms=int(datetime.fromisoformat(progress["timestamp"]).timestamp() * 1000),
        run=progress.get("runId", ""),
        batch=progress.get("batchId", -1),
        rows=rows,
        rows_per_s=round(rows / span_s, 1) if span_s else 0.0,
        processed_per_s=round(processed_per_s * rows / counted, 1) if counted else processed_per_s,
        written=written,
        written_per_s=round(written / span_s, 1) if span_s else 0.0,
        took_ms=took_ms,
        lag=sum(lags.values()),
        lags=lags,
        offsets=to_json(offsets),
        state_rows=sum(operator.get("numRowsTotal", 0) for operator in operators),
        state_bytes=sum(operator.get("memoryUsedBytes", 0) for operator in operators),
        late_rows=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        newer_rows=newer_rows(metrics),
        watermark=progress.get("eventTime", {}).get("watermark", ""),
        broken={
            name.removeprefix(METRIC): {each: int(_number(count)) for each, count in values.items()}
            for name, values in metrics.items()
            if name.startswith(METRIC)
        },
    )


def newer_rows(metrics: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the records of a batch, in all sources, whose schema is newer than the columns."""
    return sum(
        int(_number(each.get("rows"))) for name, each in metrics.items() if name.startswith(NEWER_METRIC)
    )


def _records(source: Mapping[str, Any], ends: Mapping[TopicPartition, int]) -> int:
    """Return how many records there are at most in a batch: partitions that are new to it begin at 0."""
    initial = Position.from_json(_object(source.get("endOffset"))).initial_offsets
    begins = _offsets(source.get("startOffset")) if initial is None else initial
    return sum(max(0, end - begins.get(partition, 0)) for partition, end in ends.items())


def _offsets(value: Any) -> dict[TopicPartition, int]:
    return from_json(_object(value))


def _object(value: Any) -> dict[str, Any]:
    """Return offsets, which Spark reports as an object, or as JSON in a string; {} for other values."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return {}
    is_offsets = isinstance(value, dict) and all(isinstance(offsets, dict) for offsets in value.values())
    return value if is_offsets else {}


def _number(value: Any) -> float:
    """Return zero for a number that is missing, NaN or infinite."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


def in_all(broken: Broken) -> dict[str, int]:
    """Return the rows that broke expectations by one name, `STEP: EXPECTATION`."""
    return {f"{step}: {name}": rows for step, found in broken.items() for name, rows in found.items()}


Observer = Callable[[Progress], None]


@dataclass(slots=True)
class Figures:
    """The totals of one query since it was started, and its last event."""

    query: str
    event: str = "starting"
    batches: int = 0  # with rows
    rows: int = 0
    written: int = 0
    late_rows: int = 0
    newer_rows: int = 0
    broken: dict[str, int] = field(default_factory=dict)  # rows by expectation, as "orders: positive price"
    at_ms: int = 0
    error: str = ""
    restarts: int = 0
    reason: str = ""  # of the last restart
    graph: Sequence[Mapping[str, Any]] = field(default_factory=list, repr=False)
    graph_at_ms: int = 0
    last: Progress | None = field(default=None)  # the last batch

    def add(self, progress: Progress) -> None:
        self.event, self.at_ms = progress.event, progress.at_ms
        if progress.event == "restarting":
            self.reason = progress.error
        if progress.event in {"started", "batch", "idle"}:
            self.error = ""
        if progress.event == "started":
            self.restarts = progress.restarts
            self.graph, self.graph_at_ms = progress.graph, progress.at_ms
        if progress.event == "started" and not progress.restarts:
            self.batches = self.rows = self.written = self.late_rows = self.newer_rows = 0
            self.broken = {}
            self.reason = ""
        if progress.event in {"failed", "stalled"}:
            self.error = progress.error
        if progress.event == "batch":
            self.last = progress
            self.batches += bool(progress.rows or progress.written)
            self.rows += progress.rows
            self.written += progress.written
            self.late_rows += progress.late_rows
            self.newer_rows += progress.newer_rows
            for name, rows in in_all(progress.broken).items():
                self.broken[name] = self.broken.get(name, 0) + rows

    @property
    def is_moving(self) -> bool:
        """Whether the rates of the last batch are current."""
        return self.event == "batch" and self.last is not None and self.last.rows > 0

    def worst(self, most: int) -> list[tuple[str, int]]:
        """Return the partitions with the largest lags, and these lags."""
        lags = self.last.lags if self.last is not None else {}
        behind = sorted(lags.items(), key=lambda lag: (-lag[1], lag[0]))
        return [lag for lag in behind if lag[1] > 0][:most]
