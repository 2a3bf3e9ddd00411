"""Metrics of pipelines: what is unknown has no sample."""

from headrace.gateway.metrics.derived import of_pipelines
from headrace.pipeline.progress import Figures, Progress
from headrace.pipeline.status import SILENT_MS

QUERY = "trucks.speeds"
BATCH = Progress(
    pipeline="trucks",
    query=QUERY,
    event="batch",
    at_ms=1_000,
    rows=30,
    rows_per_s=15.0,
    written_per_s=5.0,
    took_ms=2_500,
    lag=7,
    broken={"orders": {"positive price": 2}},
)


def samples(*events: Progress, now_ms: int = 1_000) -> dict[tuple[str, str], float]:
    """The samples of a query with these events, by the end of the name and the third label."""
    figures = Figures(QUERY)
    for each in events:
        figures.add(each)
    found = {}
    for family in of_pipelines({"trucks": [figures]}, now_ms):
        for sample in family.samples:
            labels = dict(sample.labels)
            assert (labels.pop("pipeline"), labels.pop("query")) == ("trucks", QUERY)
            (third,) = labels.values() or [""]
            found[sample.name.removeprefix("headrace_pipeline_query_"), third] = sample.value
    return found


def of_event(event: str, at_ms: int = 2_000) -> Progress:
    return Progress(pipeline="trucks", query=QUERY, event=event, at_ms=at_ms)


def states(found: dict[tuple[str, str], float]) -> dict[str, float]:
    return {third: value for (name, third), value in found.items() if name == "state"}


def test_a_batch() -> None:
    found = samples(BATCH)
    assert states(found) == {"running": 1, "failed": 0, "ended": 0, "silent": 0}
    assert found["rows_per_second", ""] == 15
    assert found["written_rows_per_second", ""] == 5
    assert found["lag", ""] == 7
    assert found["batch_duration_seconds", ""] == 2.5
    assert found["last_report_timestamp_seconds", ""] == 1
    assert found["broken_rows", "orders: positive price"] == 2


def test_before_the_first_batch_only_the_state_is_known() -> None:
    found = samples(of_event("started"))
    assert {name for name, _ in found} == {"state", "last_report_timestamp_seconds", "restarts"}


def test_rates_are_zero_while_a_query_waits_for_rows_or_has_ended() -> None:
    for event in ("idle", "ended", "failed"):
        found = samples(BATCH, of_event(event))
        assert (found["rows_per_second", ""], found["written_rows_per_second", ""]) == (0, 0)
        assert found["lag", ""] == 7


def test_rates_of_a_silent_query_are_not_known() -> None:
    found = samples(BATCH, now_ms=1_000 + SILENT_MS)
    assert states(found) == {"running": 0, "failed": 0, "ended": 0, "silent": 1}
    assert ("rows_per_second", "") not in found
    assert found["lag", ""] == 7


def test_a_query_that_has_failed() -> None:
    assert states(samples(BATCH, of_event("failed")))["failed"] == 1
