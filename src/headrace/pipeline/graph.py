"""The graph of a pipeline: sources, views and sinks, what each of them reads, and the rates of a run."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.pipeline.declaration import Pipeline, Sink
from headrace.pipeline.progress import Figures

SOURCE: Final = "source"
VIEW: Final = "view"
SINK: Final = "sink"
_KINDS: Final = (SOURCE, VIEW, SINK)
_MOST: Final = 200  # nodes in the report of a pipeline, which any client may have written


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A step; `about` is its topic or table, and `figures` are the rates and the lag of its last batch."""

    name: str
    kind: str
    inputs: tuple[str, ...] = ()
    about: str = ""
    figures: str = ""
    state: str = ""  # of the sink's query


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    name: str
    nodes: tuple[Node, ...]

    def node(self, name: str) -> Node | None:
        return next((each for each in self.nodes if each.name == name), None)


def graph_of(pipeline: Pipeline) -> Graph:
    """Return the graph of the declarations."""
    sources = [
        Node(name=each.name, kind=SOURCE, about=f"topic {each.topic}") for each in pipeline.sources.values()
    ]
    views = [Node(name=each.name, kind=VIEW, inputs=each.inputs) for each in pipeline.views.values()]
    sinks = [
        Node(name=each.name, kind=SINK, inputs=_inputs(each), about=each.target.label)
        for each in pipeline.queries()
    ]
    return Graph(name=pipeline.name, nodes=(*sources, *views, *sinks))


def _inputs(sink: Sink) -> tuple[str, ...]:
    return sink.inputs if sink.quarantine_of is None else (sink.quarantine_of,)


def report(graph: Graph) -> list[dict[str, Any]]:
    """Return the graph as it is written to the topic of progress."""
    return [
        {"name": each.name, "kind": each.kind, "inputs": list(each.inputs), "about": each.about}
        for each in graph.nodes
    ]


def reported(name: str, queries: Iterable[Figures]) -> Graph | None:
    """Return the graph that a pipeline has reported last; None if there is none, or if it is malformed."""
    reports = sorted((each for each in queries if each.graph), key=lambda each: each.graph_at_ms)
    if not reports:
        return None
    try:
        nodes = tuple(map(_node, reports[-1].graph[:_MOST]))
    except (TypeError, KeyError, ValueError):
        return None
    known = {each.name for each in nodes}
    return Graph(
        name=name,
        nodes=tuple(replace(n, inputs=tuple(each for each in n.inputs if each in known)) for n in nodes),
    )


def _node(value: Mapping[str, Any]) -> Node:
    name, kind, inputs, about = value["name"], value["kind"], value["inputs"], value["about"]
    if not (isinstance(name, str) and kind in _KINDS and isinstance(about, str)):
        raise ValueError(value)
    if not all(isinstance(each, str) for each in inputs):
        raise ValueError(value)
    return Node(name=name, kind=kind, inputs=tuple(inputs), about=about)


def with_figures(graph: Graph, queries: Iterable[Figures], silent: Collection[str] = ()) -> Graph:
    """Return the graph with the rates of the last batches: of sinks, and of the sources that they read.

    Queries in `silent` have not reported for a while: their rates are not known.
    """
    prefix = f"{graph.name}."
    by_sink = {each.query.removeprefix(prefix): each for each in queries if each.query not in silent}
    silent_sinks = {each.removeprefix(prefix) for each in silent}
    return replace(
        graph, nodes=tuple(_with_figures(graph, node, by_sink, silent_sinks) for node in graph.nodes)
    )


def _with_figures(graph: Graph, node: Node, by_sink: Mapping[str, Figures], silent: Collection[str]) -> Node:
    if node.kind == SINK and node.name in silent:
        return replace(node, state="silent")
    if node.kind == SINK and node.name in by_sink:
        figures = by_sink[node.name]
        last = figures.last
        if last is None:
            return replace(node, state=figures.event)
        rate = last.written_per_s if figures.is_moving else 0.0
        said = f"{_rate(rate)} rows/s out, lag {last.lag:,}"
        return replace(node, figures=said, state="running" if figures.event == "batch" else figures.event)
    if node.kind == SOURCE:
        names = [name for name in _readers(graph, node.name) if name in by_sink]
        # A query of several sources reports the rows of all of them.
        alone = [name for name in names if _sources(graph, name) == {node.name}]
        readers = [by_sink[name] for name in alone or names]
        rates = [each.last.rows_per_s if each.is_moving else 0.0 for each in readers if each.last is not None]
        return replace(node, figures=f"{_rate(max(rates))} rows/s in") if rates else node
    return node


def _readers(graph: Graph, source: str) -> Iterator[str]:
    """Yield the sinks that read a source, directly or through other steps."""
    reached = {source}
    while True:
        more = {each.name for each in graph.nodes if reached & set(each.inputs)} - reached
        if not more:
            return
        yield from sorted(name for name in more if (node := graph.node(name)) and node.kind == SINK)
        reached |= more


def _sources(graph: Graph, sink: str) -> set[str]:
    """Return the sources that a sink reads, directly or through other steps."""
    return {
        each.name for each in graph.nodes if each.kind == SOURCE and sink in set(_readers(graph, each.name))
    }


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:.1f}"
