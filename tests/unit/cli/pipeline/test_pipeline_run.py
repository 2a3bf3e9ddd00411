"""How the queries of a pipeline are told of."""

from headrace.cli.pipeline.run import in_one_line, in_short
from headrace.cli.pipeline.state import COLUMNS, rate, row, watermark, when
from headrace.cli.support.output import size
from headrace.pipeline.progress import Figures, Progress

BATCH = Progress(
    pipeline="trucks",
    query="trucks.speeds",
    event="batch",
    at_ms=1_767_225_600_000,
    batch=12,
    rows=1000,
    rows_per_s=500.0,
    written=7,
    written_per_s=3.5,
    took_ms=1250,
    lag=1500,
    lags={"positions-0": 1500},
    state_rows=350,
    state_bytes=9000,
    watermark="2026-01-01T00:48:50.000Z",
)


def event(name: str, error: str = "") -> Progress:
    return Progress(pipeline="trucks", query="trucks.speeds", event=name, at_ms=1, error=error)


def figures(*told: Progress) -> Figures:
    found = Figures("trucks.speeds")
    for each in told:
        found.add(each)
    return found


def test_a_batch_is_a_line() -> None:
    assert in_one_line(BATCH) == (
        "trucks.speeds batch 12: 1,000 rows in, 7 out, 1.2 s, lag 1,500, state 350 rows, 8.8 KiB, "
        "watermark 2026-01-01T00:48:50Z"
    )
    assert in_one_line(event("started")) == "trucks.speeds started"
    assert in_one_line(event("failed", "it broke")) == "trucks.speeds failed: it broke"


def test_the_end_of_a_run_is_a_line_with_its_sums() -> None:
    run = figures(event("started"), BATCH, BATCH, event("ended"))
    assert in_short(run) == "trucks.speeds ended: 2 batches, 2,000 rows in, 14 out, lag 1,500"
    assert in_short(figures(event("started"))) == "trucks.speeds ended: 0 batches, 0 rows in, 0 out"
    assert in_short(figures(BATCH, event("failed"))).startswith("trucks.speeds failed: 1 batch, ")


def test_a_query_that_has_done_nothing_yet_has_a_row_all_the_same() -> None:
    assert len(row(Figures("trucks.speeds"), "speeds")) == len(COLUMNS)
    assert row(figures(event("started")), "speeds")[:3] == ("speeds", "started", None)


def test_rates_are_those_of_a_query_that_moves() -> None:
    assert row(figures(BATCH), "speeds") == (
        "speeds",
        "running",
        12,
        "500",
        "3.5",
        "1,500",
        "1.2 s",
        "350 (8.8 KiB)",
        "2026-01-01T00:48:50Z",
    )
    assert row(figures(BATCH, event("idle")), "speeds")[1:5] == ("idle", 12, "0", "0")


def test_small_texts() -> None:
    assert [rate(each) for each in (0, 0.25, 9.94, 10, 12_345.6)] == ["0", "0.2", "9.9", "10", "12,346"]
    assert [size(each) for each in (0, 1023, 1024, 5 << 30)] == ["0 B", "1023 B", "1.0 KiB", "5.0 GiB"]
    assert [watermark(each) for each in ("", "1970-01-01T00:00:00.000Z")] == ["-", "-"]
    assert [when(each) for each in (0, 1_767_225_600_000)] == ["-", "2026-01-01T00:00:00Z"]
