"""How a query gets on, as Spark tells it after every batch: for the terminal, for groups, and for a topic."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from headrace.protocol.ids import TopicPartition
from headrace.spark.offsets import from_json, to_json

TOPIC: Final = "_headrace_pipelines"
"""Where progress is kept, by query: for consoles and for history."""
WRITTEN: Final = "written"
"""What the count of rows that a batch gives to its sink is called among Spark's observed metrics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One batch of one query, or its beginning, or its end."""

    pipeline: str
    query: str
    event: str  # started, batch, idle, ended, failed
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
    watermark: str = ""
    error: str = ""

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes) -> "Progress":
        known = cls.__dataclass_fields__
        return cls(**{name: value for name, value in json.loads(data).items() if name in known})


def of_batch(pipeline: str, progress: Mapping[str, Any], *, event: str = "batch") -> Progress:
    """From what Spark says of a batch."""
    offsets: dict[TopicPartition, int] = {}
    latest: dict[TopicPartition, int] = {}
    for source in progress.get("sources", ()):
        offsets |= _offsets(source.get("endOffset"))
        latest |= _offsets(source.get("latestOffset"))
    lags = {str(place): max(0, end - offsets.get(place, end)) for place, end in sorted(latest.items())}
    operators = progress.get("stateOperators", ())
    rows, rows_per_s = progress.get("numInputRows", 0), _number(progress.get("inputRowsPerSecond"))
    took_ms = progress.get("batchDuration") or progress.get("durationMs", {}).get("triggerExecution", 0)
    written = int(_number(progress.get("observedMetrics", {}).get(WRITTEN, {}).get("rows")))
    # Spark's rate counts from one batch to the next; of a first batch there is only how long it took.
    span_s = rows / rows_per_s if rows and rows_per_s else took_ms / 1000
    return Progress(
        pipeline=pipeline,
        query=progress.get("name") or progress["id"],
        event=event,
        at_ms=_milliseconds(progress["timestamp"]),
        run=progress.get("runId", ""),
        batch=progress.get("batchId", -1),
        rows=rows,
        rows_per_s=round(rows / span_s, 1) if span_s else 0.0,
        processed_per_s=_number(progress.get("processedRowsPerSecond")),
        written=written,
        written_per_s=round(written / span_s, 1) if span_s else 0.0,
        took_ms=took_ms,
        lag=sum(lags.values()),
        lags=lags,
        offsets=to_json(offsets),
        state_rows=sum(each.get("numRowsTotal", 0) for each in operators),
        state_bytes=sum(each.get("memoryUsedBytes", 0) for each in operators),
        watermark=progress.get("eventTime", {}).get("watermark", ""),
    )


def _offsets(value: Any) -> dict[TopicPartition, int]:
    """Spark gives a source's offsets as JSON in a string, or as the object itself."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            return {}
    if not isinstance(value, dict) or not all(isinstance(each, dict) for each in value.values()):
        return {}
    return from_json(value)


def _milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def _number(value: Any) -> float:
    """Zero where Spark has none, or one that is not a number."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0


Observer = Callable[[Progress], None]
