"""Declarations of expectations, and their counts in the progress."""

import json
from typing import Any

import pytest

from headrace.pipeline import Console, Delta, Json, Pipeline, PipelineError, Topic
from headrace.pipeline.expectations import Otherwise
from headrace.pipeline.progress import Figures, Progress, of_batch


@pytest.fixture
def shop() -> Pipeline:
    pipeline = Pipeline("shop")
    pipeline.source("orders", topic="orders", decode=Json("id string, price double"), bad_rows="drop")

    @pipeline.view
    def dear(orders: Any) -> Any:
        return orders

    @pipeline.sink(Topic("alerts"))
    def alerts(dear: Any) -> Any:
        return dear

    return pipeline


def test_expectations_are_on_sources_views_and_sinks(shop: Pipeline) -> None:
    shop.expect("orders", "positive price", "price > 0")
    shop.expect_or_drop("dear", "has an id", "id is not null")
    shop.expect_or_fail("alerts", "finite", "price < 1e9")
    shop.check()

    assert [(each.step, each.name, each.otherwise) for each in shop.expectations] == [
        ("orders", "positive price", Otherwise.KEEP),
        ("dear", "has an id", Otherwise.DROP),
        ("alerts", "finite", Otherwise.FAIL),
    ]


def test_rows_in_quarantine_have_a_sink_that_reads_what_the_step_reads(shop: Pipeline) -> None:
    shop.expect_or_quarantine("orders", "positive price", "price > 0", to=Topic("bad-orders"))
    shop.expect_or_quarantine("orders", "has an id", "id is not null", to=Topic("bad-orders"))
    shop.expect_or_quarantine("dear", "cheap", "price < 9", to=Delta("bad-table"))

    assert [(each.name, each.inputs, each.target) for each in shop.queries()] == [
        ("alerts", ("dear",), Topic("alerts")),
        ("orders.quarantine", ("orders",), Topic("bad-orders")),
        ("dear.quarantine", ("orders",), Delta("bad-table")),
    ]


def test_a_step_has_one_quarantine(shop: Pipeline) -> None:
    shop.expect_or_quarantine("orders", "positive price", "price > 0", to=Topic("bad-orders"))

    with pytest.raises(PipelineError, match="quarantined in topic bad-orders already"):
        shop.expect_or_quarantine("orders", "has an id", "id is not null", to=Topic("others"))


@pytest.mark.parametrize("target", [Console(), Topic("bad", raw=True)])
def test_a_quarantine_is_a_topic_of_objects_or_a_table(shop: Pipeline, target: Any) -> None:
    with pytest.raises(PipelineError, match="quarantined"):
        shop.expect_or_quarantine("orders", "positive price", "price > 0", to=target)


def test_an_expectation_on_nothing_is_refused(shop: Pipeline) -> None:
    shop.expect("order", "positive price", "price > 0")

    with pytest.raises(PipelineError, match="there is no source, view or sink 'order'"):
        shop.check()


def test_a_name_is_given_once_in_a_step(shop: Pipeline) -> None:
    shop.expect("orders", "positive price", "price > 0")
    shop.expect("dear", "positive price", "price > 0")

    with pytest.raises(PipelineError, match="'positive price' is declared twice"):
        shop.expect_or_drop("orders", "positive price", "price >= 0")


def spark_says(broken: int) -> dict[str, Any]:
    return {
        "id": "1",
        "name": "shop.alerts",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "batchId": 4,
        "numInputRows": 10,
        "observedMetrics": {"written": {"rows": 7}, "expect orders": {"positive price": broken}},
    }


def test_counts_are_in_the_progress_and_in_the_totals() -> None:
    figures = Figures("shop.alerts")
    for broken in (3, 0, 2):
        progress = of_batch("shop", spark_says(broken))
        assert progress.broken == {"orders": {"positive price": broken}}
        figures.add(Progress.decode(progress.encode()))

    assert figures.broken == {"orders: positive price": 5}
    assert json.loads(progress.encode())["broken"] == {"orders": {"positive price": 2}}


def event(name: str, **more: Any) -> Progress:
    return Progress(pipeline="shop", query="shop.alerts", event=name, at_ms=1, **more)


def test_a_restart_keeps_the_totals_and_a_new_run_does_not() -> None:
    figures = Figures("shop.alerts")
    for each in (
        event("started"),
        event("batch", rows=5, written=4),
        event("failed", error="no leader"),
        event("restarting", error="no leader", restarts=1),
        event("started", restarts=1),
        event("batch", rows=2, written=2),
    ):
        figures.add(each)
    assert (figures.rows, figures.written, figures.batches) == (7, 6, 2)
    assert (figures.restarts, figures.reason, figures.error) == (1, "no leader", "")

    figures.add(event("started"))
    assert (figures.rows, figures.restarts, figures.reason) == (0, 0, "")
