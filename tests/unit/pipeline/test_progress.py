"""From what Spark says of a batch to what people are told."""

from typing import Any

from headrace.pipeline.progress import Figures, Progress, of_batch
from headrace.pipeline.status import SILENT_MS, state_of, totals
from headrace.protocol.ids import TopicPartition
from headrace.spark.position import INITIAL, Position

# As Spark 4.3 writes it, without what we do not look at.
SAID: dict[str, Any] = {
    "id": "1f3ad1c5-1a73-4b62-9bb4-2fdcbd1a4c21",
    "runId": "46b68c76-3065-462f-bde8-1e658ba3c618",
    "name": "trucks.speeds",
    "timestamp": "2026-01-01T00:00:10.500Z",
    "batchId": 12,
    "batchDuration": 400,
    "numInputRows": 1000,
    "inputRowsPerSecond": 500.0,
    "processedRowsPerSecond": 2500.0,
    "durationMs": {"addBatch": 300, "triggerExecution": 400},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [
        {"numRowsTotal": 7, "memoryUsedBytes": 4096},
        {"numRowsTotal": 3, "memoryUsedBytes": 1024, "numRowsDroppedByWatermark": 2},
    ],
    "sources": [
        {
            "startOffset": {"positions": {"0": 10, "1": 20}},
            "endOffset": {"positions": {"0": 600, "1": 430}},
            "latestOffset": {"positions": {"0": 650, "1": 430, "2": 5}},
        }
    ],
    "observedMetrics": {"written": {"rows": 350}},
}


def batch(number: int, *, query: str = "trucks.speeds", rows: int = 10, at_ms: int = 0) -> Progress:
    return Progress(
        pipeline="trucks", query=query, event="batch", at_ms=at_ms, batch=number, rows=rows, written=rows // 2
    )


def event(name: str, *, query: str = "trucks.speeds", at_ms: int = 0, error: str = "") -> Progress:
    return Progress(pipeline="trucks", query=query, event=name, at_ms=at_ms, error=error)


def test_a_batch_tells_rows_rates_lag_state_and_watermark() -> None:
    told = of_batch("trucks", SAID)
    assert (told.query, told.batch, told.rows, told.written, told.took_ms) == (
        "trucks.speeds",
        12,
        1000,
        350,
        400,
    )
    assert (told.rows_per_s, told.written_per_s) == (500.0, 175.0)
    assert told.lags == {"positions-0": 50, "positions-1": 0, "positions-2": 0}
    assert told.lag == 50
    assert told.offsets == {"positions": {"0": 600, "1": 430}}
    assert (told.state_rows, told.state_bytes) == (10, 5120)
    assert told.late_rows == 2
    assert told.watermark == "2026-01-01T00:00:00.000Z"
    assert told.at_ms == 1_767_225_610_500


def test_the_rates_of_a_first_batch_are_those_of_its_own_time() -> None:
    told = of_batch("trucks", SAID | {"inputRowsPerSecond": float("nan"), "batchId": 0})
    assert (told.rows_per_s, told.written_per_s) == (2500.0, 875.0)


def test_rows_that_spark_has_counted_twice_are_counted_once() -> None:
    """The result of a task is lost with its executor, for example, and computed again."""
    (source,) = SAID["sources"]
    twice = {"numInputRows": 2000, "inputRowsPerSecond": 1000.0, "processedRowsPerSecond": 5000.0}
    told = of_batch("trucks", SAID | twice | {"sources": [source | {"numInputRows": 2000}]})
    assert told.rows == 590 + 410
    assert (told.rows_per_s, told.written_per_s, told.processed_per_s) == (500.0, 175.0, 2500.0)

    initial = Position(
        offsets={TopicPartition("positions", 0): 50}, initial_offsets={TopicPartition("positions", 0): 40}
    )
    first = {"startOffset": dict(INITIAL), "endOffset": initial.to_json(), "numInputRows": 13}
    assert of_batch("trucks", SAID | {"numInputRows": 13, "sources": [first]}).rows == 10


def test_an_empty_batch_has_no_rates_and_no_offsets() -> None:
    told = of_batch(
        "trucks", {"name": "trucks.speeds", "timestamp": "2026-01-01T00:00:10.500Z", "sources": []}
    )
    assert (told.rows, told.written, told.rows_per_s, told.written_per_s, told.lag) == (0, 0, 0.0, 0.0, 0)


def test_offsets_of_other_sources_are_passed_over() -> None:
    rate = {"endOffset": 17, "latestOffset": "18"}
    told = of_batch("trucks", SAID | {"sources": [rate, *SAID["sources"]]})
    assert told.offsets == {"positions": {"0": 600, "1": 430}}


def test_progress_survives_the_topic_and_a_field_of_a_later_release() -> None:
    told = of_batch("trucks", SAID)
    assert Progress.decode(told.encode()) == told
    assert Progress.decode(told.encode()[:-1] + b',"of_tomorrow":1}') == told


def test_figures_add_up_since_the_last_start() -> None:
    figures = Figures("trucks.speeds")
    for each in (
        event("started"),
        batch(0),
        event("failed", error="no"),
        event("started"),
        batch(1),
        batch(2),
    ):
        figures.add(each)
    assert (figures.batches, figures.rows, figures.written, figures.error) == (2, 20, 10, "")
    assert figures.last is not None
    assert figures.last.batch == 2


def test_a_batch_without_rows_counts_as_none_and_has_no_rate() -> None:
    figures = Figures("trucks.speeds")
    figures.add(batch(0, rows=0))
    assert figures.batches == 0
    assert not figures.is_moving


def test_the_partitions_that_are_most_behind_come_first_and_those_that_are_not_are_left_out() -> None:
    figures = Figures("trucks.speeds")
    figures.add(of_batch("trucks", SAID))
    assert figures.worst(3) == [("positions-0", 50)]


def test_history_becomes_the_figures_of_each_query() -> None:
    told = [batch(0, query="trucks.b"), batch(0, query="trucks.a"), batch(1, query="trucks.b")]
    found = totals(told)["trucks"]
    assert [(each.query, each.batches) for each in found] == [("trucks.a", 1), ("trucks.b", 2)]


def test_a_pipeline_that_nobody_can_see_stands_as_its_last_words_say() -> None:
    def state(*told: Progress, now_ms: int = 0) -> str:
        return state_of(totals(told)["trucks"], now_ms)

    one, two = "trucks.a", "trucks.b"
    assert state(event("ended", query=one), event("ended", query=two)) == "ended"
    assert state(event("ended", query=one), event("failed", query=two)) == "failed"
    assert state(event("ended", query=one), batch(3, query=two)) == "running"
    assert state(event("idle", query=two), now_ms=SILENT_MS) == "silent"
