"""A graph as SVG, readable on light and dark backgrounds."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Final

from headrace.pipeline.graph import Graph
from headrace.pipeline.graph_layout import LINE, PADDING, Box, Point, lay_out

_STYLE: Final = """<style>
.graph{color-scheme:light dark}
.graph text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.graph .paper{fill:#fff}.graph text{fill:#1c2430}.graph .about{fill:#55606f}
.graph rect.node{fill:#f3f6fa;stroke:#8793a3}.graph .source rect.node{stroke:#2f6fed}
.graph .sink rect.node{stroke:#1f8a4c}.graph .failed rect.node{stroke:#c62f2f;fill:#fdf0f0}
.graph .edge{fill:none;stroke:#8793a3;stroke-width:1.5}.graph marker path{fill:#8793a3}
@media (prefers-color-scheme:dark){
.graph .paper{fill:#14181f}.graph text{fill:#e6eaf0}.graph .about{fill:#a3adba}
.graph rect.node{fill:#1e2530;stroke:#6b7787}.graph .source rect.node{stroke:#6c9cff}
.graph .sink rect.node{stroke:#4cc27f}.graph .failed rect.node{stroke:#ff7070;fill:#3a1d20}
.graph .edge{stroke:#6b7787}.graph marker path{fill:#6b7787}}
</style>"""
_ARROW: Final = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>'
)


def to_svg(graph: Graph, *, alone: bool = True) -> str:
    """Return the drawing: a file of its own, or without styles, for a page that has them."""
    layout = lay_out(graph)
    width, height = round(layout.width), round(layout.height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" role="img" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" aria-label="{escape(_in_words(graph))}">'
    )
    parts = [
        head,
        *([_STYLE, f'<rect class="paper" width="{width}" height="{height}"/>'] if alone else []),
        _ARROW,
        *map(_edge, layout.edges),
        *(line for box in layout.boxes for line in _box(box)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _in_words(graph: Graph) -> str:
    edges = [f"{each.name} reads {', '.join(each.inputs)}" for each in graph.nodes if each.inputs]
    return f"pipeline {graph.name}: {'; '.join(edges)}"


def _edge(points: Sequence[Point]) -> str:
    """Return a curve through the points, which is horizontal at each of them."""
    (x, y), *_ = points
    path = [f"M{x:.1f} {y:.1f}"]
    for (from_x, from_y), (to_x, to_y) in pairwise(points):
        middle = (from_x + to_x) / 2
        path.append(f"C{middle:.1f} {from_y:.1f} {middle:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}")
    return f'<path class="edge" marker-end="url(#arrow)" d="{"".join(path)}"/>'


def _box(box: Box) -> Iterator[str]:
    state = " failed" if box.node.state == "failed" else ""
    yield f'<g class="{box.node.kind}{state}">'
    yield (
        f'<rect class="node" x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="6"/>'
    )
    for number, line in enumerate(box.lines):
        y = box.y + PADDING + (number + 0.75) * LINE
        about = ' class="about"' if number else ""
        yield f'<text{about} x="{box.x + PADDING:.1f}" y="{y:.1f}">{escape(line)}</text>'
    yield "</g>"
