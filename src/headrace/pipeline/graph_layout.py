"""Where the nodes and edges of a graph are drawn: in layers from left to right, without a library.

The layer of a node is after those of all its inputs, and sinks that nobody reads are in the last one. An edge
over several layers gets a place in each layer between, so that it does not cross the nodes there. Within a
layer, nodes are ordered by the places of their neighbours, which leaves few crossings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from headrace.pipeline.graph import SINK, Graph, Node

CHARACTER: Final = 7.3  # the width of one, at most; pixels, as everything here
LINE: Final = 17.0
PADDING: Final = 12.0
BETWEEN_LAYERS: Final = 64.0
BETWEEN_NODES: Final = 18.0
MARGIN: Final = 16.0
MOST_CHARACTERS: Final = 44  # of a line
_SWEEPS: Final = 4

Point = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A node with its lines of text, and its place."""

    node: Node
    lines: tuple[str, ...]
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    boxes: tuple[Box, ...]
    edges: tuple[tuple[Point, ...], ...]  # from the right side of a box, through free places, to a left side
    width: float
    height: float


@dataclass(slots=True)
class _Item:
    """A node, or the place of an edge in a layer that it passes."""

    layer: int
    width: float = 0.0
    height: float = LINE
    node: Node | None = None
    y: float = 0.0


def lay_out(graph: Graph) -> Layout:
    layers = _layers(graph)
    items = {node.name: _item(node, layers[node.name]) for node in graph.nodes}
    paths = _paths(graph, items)
    columns = _columns([*items.values(), *(item for path in paths for item in path if item.node is None)])
    _order(columns, paths)
    widths = [max(item.width for item in column) for column in columns]
    lefts = [MARGIN + sum(widths[:index]) + index * BETWEEN_LAYERS for index in range(len(columns))]
    height = max(map(_height, columns))
    for column in columns:
        y = MARGIN + (height - _height(column)) / 2
        for item in column:
            item.y = y
            y += item.height + BETWEEN_NODES
    return Layout(
        boxes=tuple(
            Box(
                node=node,
                lines=lines_of(node),
                x=lefts[items[node.name].layer],
                y=items[node.name].y,
                width=widths[items[node.name].layer],
                height=items[node.name].height,
            )
            for node in graph.nodes
        ),
        edges=tuple(_points(path, lefts, widths) for path in paths),
        width=lefts[-1] + widths[-1] + MARGIN,
        height=height + 2 * MARGIN,
    )


def lines_of(node: Node) -> tuple[str, ...]:
    """Return the lines in the box of a node; long ones are cut."""
    title = f"{node.kind} {node.name}"
    if node.state:
        title = f"{title} · {node.state}"
    return tuple(map(_cut, filter(None, (title, node.about, node.figures))))


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"


def _layers(graph: Graph) -> dict[str, int]:
    """Return the layer of each node: the longest way to it."""
    found: dict[str, int] = {}

    def layer(node: Node, path: tuple[str, ...] = ()) -> int:
        if node.name not in found:
            inputs = [graph.node(name) for name in node.inputs if name not in (*path, node.name)]
            above = [layer(each, (*path, node.name)) for each in inputs if each is not None]
            found[node.name] = max(above, default=-1) + 1
        return found[node.name]

    for node in graph.nodes:
        layer(node)
    last = max(found.values(), default=0)
    read = {name for node in graph.nodes for name in node.inputs}
    return {
        node.name: last if node.kind == SINK and node.name not in read else found[node.name]
        for node in graph.nodes
    }


def _item(node: Node, layer: int) -> _Item:
    lines = lines_of(node)
    width = max(map(len, lines)) * CHARACTER + 2 * PADDING
    return _Item(layer=layer, width=width, height=len(lines) * LINE + 2 * PADDING, node=node)


def _paths(graph: Graph, items: Mapping[str, _Item]) -> list[list[_Item]]:
    """Return for each edge the items that it passes, with new ones for the layers between its ends."""
    paths = []
    for node in graph.nodes:
        for name in dict.fromkeys(node.inputs):
            if name in items and items[name].layer < items[node.name].layer:
                between = range(items[name].layer + 1, items[node.name].layer)
                paths.append([items[name], *(_Item(layer=each) for each in between), items[node.name]])
    return paths


def _columns(items: Sequence[_Item]) -> list[list[_Item]]:
    columns: list[list[_Item]] = [[] for _ in range(max((item.layer for item in items), default=0) + 1)]
    for item in items:
        columns[item.layer].append(item)
    return [column for column in columns if column] or [[_Item(layer=0)]]


def _order(columns: list[list[_Item]], paths: Sequence[Sequence[_Item]]) -> None:
    """Order each layer by the average places of the neighbours, from left to right and back."""
    before: dict[int, list[_Item]] = {}
    after: dict[int, list[_Item]] = {}
    for path in paths:
        for left, right in pairwise(path):
            before.setdefault(id(right), []).append(left)
            after.setdefault(id(left), []).append(right)
    for sweep in range(_SWEEPS):
        neighbours = after if sweep % 2 else before
        places = {id(item): place for column in columns for place, item in enumerate(column)}
        for column in reversed(columns) if sweep % 2 else columns:
            column.sort(key=lambda item: _average(neighbours.get(id(item), ()), places, item))
            places |= {id(item): place for place, item in enumerate(column)}


def _average(neighbours: Sequence[_Item], places: Mapping[int, int], item: _Item) -> float:
    if not neighbours:
        return float(places[id(item)])
    return sum(places[id(each)] for each in neighbours) / len(neighbours)


def _height(column: Sequence[_Item]) -> float:
    return sum(item.height for item in column) + (len(column) - 1) * BETWEEN_NODES


def _points(path: Sequence[_Item], lefts: Sequence[float], widths: Sequence[float]) -> tuple[Point, ...]:
    points: list[Point] = []
    for number, item in enumerate(path):
        middle = item.y + item.height / 2
        if number > 0:
            points.append((lefts[item.layer], middle))
        if number < len(path) - 1:
            points.append((lefts[item.layer] + widths[item.layer], middle))
    return tuple(points)
