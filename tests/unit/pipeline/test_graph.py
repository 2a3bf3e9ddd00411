"""The graph of a pipeline: what reads what, rates, and a flowchart."""

from typing import Any

import pytest

from headrace.pipeline import Delta, Json, Pipeline, Topic
from headrace.pipeline.graph import graph_of, report, reported, to_mermaid, with_figures
from headrace.pipeline.progress import Figures, Progress


@pytest.fixture
def shop() -> Pipeline:
    pipeline = Pipeline("shop")
    for name in ("orders", "customers"):
        pipeline.source(name, topic=f"shop-{name}", decode=Json("id string"), bad_rows="drop")

    @pipeline.view
    def dear(orders: Any) -> Any:
        return orders

    @pipeline.view
    def named(dear: Any, customers: Any) -> Any:
        return dear.join(customers, "id")

    @pipeline.sink(Topic("shop-alerts"))
    def alerts(named: Any) -> Any:
        return named

    @pipeline.sink(Delta("shop-table"))
    def archive(orders: Any) -> Any:
        return orders

    pipeline.expect_or_quarantine("dear", "an id", "id is not null", to=Topic("shop-<bad>"))
    return pipeline


def figures(sink: str, event: str = "batch", **last: Any) -> Figures:
    found = Figures(f"shop.{sink}")
    found.add(Progress(pipeline="shop", query=found.query, event="batch", at_ms=1, **last))
    found.event = event
    return found


def test_the_graph_has_what_each_step_reads(shop: Pipeline) -> None:
    assert [(each.kind, each.name, each.inputs, each.about) for each in graph_of(shop).nodes] == [
        ("source", "orders", (), "topic shop-orders"),
        ("source", "customers", (), "topic shop-customers"),
        ("view", "dear", ("orders",), ""),
        ("view", "named", ("dear", "customers"), ""),
        ("sink", "alerts", ("named",), "topic shop-alerts"),
        ("sink", "archive", ("orders",), "Delta table shop-table"),
        ("sink", "dear.quarantine", ("dear",), "topic shop-<bad>"),
    ]


def test_sinks_and_their_sources_have_rates(shop: Pipeline) -> None:
    graph = with_figures(
        graph_of(shop),
        [
            figures("archive", rows=10, rows_per_s=1200.4, written_per_s=3.25, lag=4000),
            figures("alerts", "failed", rows=10, rows_per_s=1700, written_per_s=5, lag=1),
        ],
    )

    said = {each.name: (each.state, each.figures) for each in graph.nodes}
    assert said["archive"] == ("running", "3.2 rows/s out, lag 4,000")
    assert said["alerts"] == ("failed", "0 rows/s out, lag 1")
    assert said["orders"] == ("", "1,200 rows/s in")  # not the rate of a query that reads both sources
    assert said["customers"] == ("", "0 rows/s in")
    assert said["dear"] == said["dear.quarantine"] == ("", "")


def test_the_rates_of_a_query_that_does_not_report_are_not_known(shop: Pipeline) -> None:
    given = [
        figures("archive", rows=10, rows_per_s=1200.4, written_per_s=3.25, lag=4000),
        figures("alerts", rows=10, rows_per_s=1700, written_per_s=5, lag=1),
    ]
    graph = with_figures(graph_of(shop), given, silent={"shop.archive", "shop.alerts"})

    said = {each.name: (each.state, each.figures) for each in graph.nodes}
    assert said["archive"] == said["alerts"] == ("silent", "")
    assert said["orders"] == said["customers"] == ("", "")


def test_a_flowchart_of_mermaid_has_the_steps_and_what_they_read(shop: Pipeline) -> None:
    graph = with_figures(graph_of(shop), [figures("archive", rows=10, written_per_s=3.25, lag=4000)])

    assert to_mermaid(graph).splitlines() == [
        "flowchart LR",
        '  n0["source orders<br>topic shop-orders<br>0 rows/s in"]',
        '  n1["source customers<br>topic shop-customers"]',
        '  n2["view dear"]',
        '  n3["view named"]',
        '  n4["sink alerts<br>topic shop-alerts"]',
        '  n5["sink archive · running<br>Delta table shop-table<br>3.2 rows/s out, lag 4,000"]',
        '  n6["sink dear.quarantine<br>topic shop-#lt;bad#gt;"]',
        "  n0 --> n2",
        "  n2 --> n3",
        "  n1 --> n3",
        "  n3 --> n4",
        "  n0 --> n5",
        "  n2 --> n6",
    ]


def test_the_graph_comes_back_from_the_report_of_the_last_run(shop: Pipeline) -> None:
    old = Figures("shop.gone")
    old.add(Progress(pipeline="shop", query="shop.gone", event="started", at_ms=1, graph=[]))
    new = Figures("shop.alerts")
    started = Progress(
        pipeline="shop", query="shop.alerts", event="started", at_ms=2, graph=report(graph_of(shop))
    )
    new.add(Progress.decode(started.encode()))

    assert reported("shop", [new, old]) == graph_of(shop)
    assert reported("shop", [old]) is None


@pytest.mark.parametrize(
    "graph",
    [
        [1],
        ["orders"],
        [{"name": "a"}],
        [{"name": "a", "kind": "<b>", "inputs": [], "about": ""}],
        [{"name": "a", "kind": "sink", "inputs": [1], "about": ""}],
        [{"name": "a", "kind": "sink", "inputs": 3, "about": ""}],
    ],
)
def test_a_report_that_no_pipeline_has_written_is_ignored(graph: Any) -> None:
    figures = Figures("shop.alerts")
    figures.add(Progress(pipeline="shop", query="shop.alerts", event="started", at_ms=2, graph=graph))

    assert reported("shop", [figures]) is None


def test_steps_that_read_each_other_in_a_report_are_listed_once() -> None:
    nodes = [
        {"name": "a", "kind": "view", "inputs": ["b", "nothing"], "about": ""},
        {"name": "b", "kind": "view", "inputs": ["a"], "about": ""},
    ]
    figures = Figures("shop.a")
    figures.add(Progress(pipeline="shop", query="shop.a", event="started", at_ms=2, graph=nodes))

    graph = reported("shop", [figures])
    assert graph is not None
    assert graph.nodes[0].inputs == ("b",)
    assert to_mermaid(graph).splitlines()[-2:] == ["  n1 --> n0", "  n0 --> n1"]
