"""The graph of a pipeline: sources, views and sinks, what each of them reads, and the rates of a run."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.pipeline.declaration import Pipeline
from headrace.pipeline.progress import Figures

SOURCE: Final = "source"
VIEW: Final = "view"
SINK: Final = "sink"
_KINDS: Final = (SOURCE, VIEW, SINK)
_MOST: Final = 200  # nodes in the report of a pipeline, which any client may have written
_ENTITIES: Final = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\n": " "}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
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
    nodes: tuple[GraphNode, ...]


def graph_of(pipeline: Pipeline) -> Graph:
    """Return the graph of the declarations."""
    nodes = [
        GraphNode(name=source.name, kind=SOURCE, about=f"topic {source.topic}")
        for source in pipeline.sources.values()
    ]
    nodes += [GraphNode(name=view.name, kind=VIEW, inputs=view.inputs) for view in pipeline.views.values()]
    for sink in pipeline.queries():
        inputs = sink.inputs if sink.quarantine_of is None else (sink.quarantine_of,)
        nodes.append(GraphNode(name=sink.name, kind=SINK, inputs=inputs, about=sink.target.label))
    return Graph(name=pipeline.name, nodes=tuple(nodes))


def report(graph: Graph) -> list[dict[str, Any]]:
    """Return the graph as it is written to the topic of progress."""
    return [
        {"name": node.name, "kind": node.kind, "inputs": list(node.inputs), "about": node.about}
        for node in graph.nodes
    ]


def reported(name: str, queries: Iterable[Figures]) -> Graph | None:
    """Return the graph that a pipeline has reported last; None if there is none, or if it is malformed."""
    newest = max(
        (figures for figures in queries if figures.graph), key=lambda it: it.graph_at_ms, default=None
    )
    if newest is None:
        return None
    try:
        nodes = tuple(map(_node, newest.graph[:_MOST]))
    except (TypeError, KeyError, ValueError):
        return None
    known = {node.name for node in nodes}
    return Graph(
        name=name,
        nodes=tuple(replace(node, inputs=tuple(i for i in node.inputs if i in known)) for node in nodes),
    )


def _node(value: Mapping[str, Any]) -> GraphNode:
    name, kind, inputs, about = value["name"], value["kind"], value["inputs"], value["about"]
    texts = (name, about, *inputs)
    if kind not in _KINDS or not all(isinstance(text, str) for text in texts):
        raise ValueError(value)
    return GraphNode(name=name, kind=kind, inputs=tuple(inputs), about=about)


def with_figures(graph: Graph, queries: Iterable[Figures], silent: Collection[str] = ()) -> Graph:
    """Return the graph with the rates of the last batches: of sinks, and of the sources that they read.

    Queries in `silent` have not reported for a while: their rates are not known.
    """
    by_sink = {figures.query.removeprefix(f"{graph.name}."): figures for figures in queries}
    sources = {
        node.name: {source.name for source in graph.nodes if node.name in _readers(graph, source)}
        for node in graph.nodes
        if node.kind == SINK and node.name in by_sink and by_sink[node.name].query not in silent
    }
    nodes = []
    for node in graph.nodes:
        figures = by_sink.get(node.name) if node.kind == SINK else None
        if figures is not None and figures.query in silent:
            nodes.append(replace(node, state="silent"))
        elif figures is not None and figures.last is None:
            nodes.append(replace(node, state=figures.event))
        elif figures is not None and figures.last is not None:
            rate = figures.last.written_per_s if figures.is_moving else 0.0
            text = f"{_rate(rate)} rows/s out, lag {figures.last.lag:,}"
            state = "running" if figures.event == "batch" else figures.event
            nodes.append(replace(node, figures=text, state=state))
        else:
            readers = [sink for sink, names in sources.items() if node.name in names]
            # A query of several sources reports the rows of all of them.
            alone = [sink for sink in readers if sources[sink] == {node.name}]
            rates = [
                last.rows_per_s if by_sink[sink].is_moving else 0.0
                for sink in alone or readers
                if (last := by_sink[sink].last) is not None
            ]
            nodes.append(replace(node, figures=f"{_rate(max(rates))} rows/s in") if rates else node)
    return replace(graph, nodes=tuple(nodes))


def _readers(graph: Graph, source: GraphNode) -> set[str]:
    """Return the steps that read a source, directly or through others; none if `source` is another step."""
    reached = {source.name} if source.kind == SOURCE else set[str]()
    while more := {node.name for node in graph.nodes if reached & set(node.inputs)} - reached:
        reached |= more
    return reached


def _rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:.1f}"


def to_mermaid(graph: Graph) -> str:
    """Return the graph as a flowchart of Mermaid, which GitHub and mkdocs draw."""
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        title = f"{node.kind} {node.name}{f' · {node.state}' if node.state else ''}"
        texts = [text.translate(_ENTITIES) for text in (title, node.about, node.figures) if text]
        lines.append(f'  {ids[node.name]}["{"<br>".join(texts)}"]')
    lines += [
        f"  {ids[name]} --> {ids[node.name]}"
        for node in graph.nodes
        for name in dict.fromkeys(node.inputs)
        if name in ids
    ]
    return "\n".join(lines)
