"""`headrace pipeline graph`: draw the sources, views and sinks of a pipeline, with their rates."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.pipeline.commands import file_argument, open_pipeline, state_option
from headrace.cli.support.session import Session, options
from headrace.client.errors import ClientError

if TYPE_CHECKING:
    from headrace.cli.pipeline.commands import OpenedPipeline
    from headrace.pipeline.graph import Graph, Node
    from headrace.pipeline.progress import Figures


@click.command()
@file_argument
@click.option(
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="Write an SVG image to this file.",
)
@state_option
@options
def graph(session: Session, path: Path, root: Path | None, output: Path | None) -> None:
    """Draw a pipeline:  headrace pipeline graph trucks.py --output trucks.svg

    Sources, views and sinks, and what each of them reads: as text, or as an SVG image. With the rates and
    lags of the last batches, if the pipeline has run on the cluster.
    """
    from headrace.pipeline.graph import graph_of, with_figures  # noqa: PLC0415
    from headrace.pipeline.graph_svg import to_svg  # noqa: PLC0415

    output = output and output.absolute()
    opened = open_pipeline(session, path, root)
    found = with_figures(graph_of(opened.pipeline), _figures(session, opened))
    if output is None:
        session.show(asdict(found), "\n".join(_lines(found)))
        return
    output.write_text(to_svg(found), "utf-8")
    session.show({"pipeline": found.name, "output": str(output)}, f"wrote {output}")


def _figures(session: Session, opened: "OpenedPipeline") -> "list[Figures]":
    """Return the last figures of all queries; none if the cluster cannot be reached."""
    from headrace.pipeline.observers import history  # noqa: PLC0415
    from headrace.pipeline.status import TAIL, totals  # noqa: PLC0415

    try:
        progress = list(history(session.connection, opened.pipeline.name, last=TAIL))
    except ClientError as error:
        click.echo(f"without rates: {error}", err=True)
        return []
    return totals(progress).get(opened.pipeline.name, [])


def _lines(graph: "Graph") -> Iterator[str]:
    """Yield the graph as a tree: below each step, the steps that read it."""
    yield f"pipeline {graph.name}"
    for node in graph.nodes:
        if not node.inputs:
            yield from _tree(graph, node, 1)


def _tree(graph: "Graph", node: "Node", depth: int) -> Iterator[str]:
    about = f" -> {node.about}" if node.kind == "sink" else f": {node.about}" if node.about else ""
    more = ", ".join(filter(None, (node.state, node.figures)))
    also = f" (reads {', '.join(node.inputs)})" if len(node.inputs) > 1 else ""
    yield f"{'  ' * depth}{node.kind} {node.name}{also}{about}{f'; {more}' if more else ''}"
    for each in graph.nodes:
        if node.name in each.inputs:
            yield from _tree(graph, each, depth + 1)
