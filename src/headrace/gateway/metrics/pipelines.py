"""Metrics of the queries of pipelines, from what they have reported. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import Metric

from headrace.gateway.metrics.exposition import gauge
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.status import state_of

_STATES: Final = ("running", "failed", "ended", "silent")
_QUERY: Final = ("pipeline", "query")
_BATCH_GAUGES: Final[dict[str, tuple[str, Callable[[Progress], float]]]] = {
    "lag": ("Records that the query has still to read after its last batch.", lambda batch: batch.lag),
    "batch_duration_seconds": ("Duration of the last batch.", lambda batch: batch.took_ms / 1000),
    "state_rows": ("Rows in the state store of the query.", lambda batch: batch.state_rows),
    "state_bytes": ("Memory of the state store of the query.", lambda batch: batch.state_bytes),
}
_RATE_GAUGES: Final[dict[str, tuple[str, Callable[[Progress], float]]]] = {
    "rows_per_second": ("Rows that the query reads.", lambda batch: batch.rows_per_s),
    "written_rows_per_second": ("Rows that the query writes.", lambda batch: batch.written_per_s),
}


def of_pipelines(pipelines: Mapping[str, Sequence[Figures]], now_ms: int) -> Iterator[Metric]:
    """Return state and figures of every query; what is not known has no sample."""
    queries = [((name, each.query), each) for name, figures in pipelines.items() for each in figures]
    states = {labels: state_of([each], now_ms) for labels, each in queries}
    yield gauge(
        "headrace_pipeline_query_state",
        "1 for the state that the query is in.",
        (*_QUERY, "state"),
        [((*labels, state), states[labels] == state) for labels, _ in queries for state in _STATES],
    )
    yield gauge(
        "headrace_pipeline_query_last_report_timestamp_seconds",
        "When the query has reported last.",
        _QUERY,
        [(labels, each.at_ms / 1000) for labels, each in queries],
    )
    yield gauge(
        "headrace_pipeline_query_restarts",
        "Restarts of the query since the pipeline was started, as far back as the last 20,000 reports.",
        _QUERY,
        [(labels, each.restarts) for labels, each in queries],
    )
    yield gauge(
        "headrace_pipeline_query_broken_rows",
        "Rows that broke an expectation since the query was started, in the last 20,000 reports.",
        (*_QUERY, "expectation"),
        [((*labels, name), rows) for labels, each in queries for name, rows in each.broken.items()],
    )
    batches = [(labels, each, each.last) for labels, each in queries if each.last is not None]
    yield gauge(
        "headrace_pipeline_query_newer_rows",
        "Records of a newer schema than the columns since the query was started, in the last 20,000 reports.",
        _QUERY,
        [(labels, each.newer_rows) for labels, each, _ in batches],
    )
    for name, (help_, value) in _BATCH_GAUGES.items():
        samples = [(labels, value(batch)) for labels, _, batch in batches]
        yield gauge(f"headrace_pipeline_query_{name}", help_, _QUERY, samples)
    for name, (help_, value) in _RATE_GAUGES.items():
        samples = [
            (labels, value(batch) if each.is_moving and states[labels] == "running" else 0)
            for labels, each, batch in batches
            if states[labels] != "silent"
        ]
        yield gauge(f"headrace_pipeline_query_{name}", help_, _QUERY, samples)
