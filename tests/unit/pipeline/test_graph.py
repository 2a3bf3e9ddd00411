"""The graph of a pipeline: what reads what, rates, and a drawing in which nothing overlaps."""

import re
from itertools import combinations
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from headrace.pipeline import Delta, Json, Pipeline, Topic
from headrace.pipeline.graph import Graph, Node, graph_of, report, reported, with_figures
from headrace.pipeline.graph_layout import lay_out
from headrace.pipeline.graph_svg import to_svg
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


def test_boxes_do_not_overlap_and_edges_lead_to_the_right(shop: Pipeline) -> None:
    layout = lay_out(graph_of(shop))

    for one, other in combinations(layout.boxes, 2):
        assert (
            one.x + one.width < other.x
            or other.x + other.width < one.x
            or one.y + one.height < other.y
            or other.y + other.height < one.y
        )
    assert len(layout.edges) == 6
    for edge in layout.edges:
        assert [x for x, _ in edge] == sorted(x for x, _ in edge)
        for x, y in edge[1:-1]:  # places between the ends are outside of all boxes
            assert not [b for b in layout.boxes if b.x <= x <= b.x + b.width and b.y < y < b.y + b.height]
    for box in layout.boxes:
        assert 0 <= box.x <= box.x + box.width <= layout.width
        assert 0 <= box.y <= box.y + box.height <= layout.height
        assert all(7.3 * len(line) <= box.width for line in box.lines)


def test_the_drawing_is_xml_with_every_name_escaped(shop: Pipeline) -> None:
    text = to_svg(graph_of(shop))
    root = ET.fromstring(text)

    texts = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"source orders", "view named", "sink alerts", "topic shop-<bad>"} <= set(texts)
    assert "prefers-color-scheme:dark" in text
    assert "<style>" not in to_svg(graph_of(shop), alone=False)
    assert re.fullmatch(r"pipeline shop: dear reads orders; .*", root.attrib["aria-label"])


def test_a_long_name_is_cut() -> None:
    graph = Graph(name="long", nodes=(Node(name="n" * 300, kind="source"),))

    (box,) = lay_out(graph).boxes
    assert box.lines == (f"source {'n' * 36}…",)


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


def test_steps_that_read_each_other_in_a_report_can_be_drawn() -> None:
    nodes = [
        {"name": "a", "kind": "view", "inputs": ["b", "nothing"], "about": ""},
        {"name": "b", "kind": "view", "inputs": ["a"], "about": ""},
    ]
    figures = Figures("shop.a")
    figures.add(Progress(pipeline="shop", query="shop.a", event="started", at_ms=2, graph=nodes))

    graph = reported("shop", [figures])
    assert graph is not None
    assert graph.nodes[0].inputs == ("b",)
    assert ET.fromstring(to_svg(graph)) is not None
