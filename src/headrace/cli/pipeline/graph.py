"""`headrace pipeline graph`: show the sources, views and sinks of a pipeline, with their rates."""

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
    from headrace.pipeline.graph import Graph, GraphNode
    from headrace.pipeline.progress import Figures


@click.command()
@file_argument
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart, which GitHub and mkdocs draw.")
@state_option
@options
def graph(session: Session, path: Path, root: Path | None, mermaid: bool) -> None:
    """Show the steps of a pipeline:  headrace pipeline graph trucks.py

    Sources, views and sinks, and what each of them reads: as a tree, or as a flowchart in Mermaid. With the
    rates and lags of the last batches, if the pipeline has run on the cluster.
    """
    from headrace.pipeline.graph import graph_of, to_mermaid, with_figures  # noqa: PLC0415

    opened = open_pipeline(session, path, root)
    drawn = with_figures(graph_of(opened.pipeline), _figures(session, opened))
    if mermaid:
        session.show({"pipeline": drawn.name, "mermaid": to_mermaid(drawn)}, to_mermaid(drawn))
    else:
        session.show(asdict(drawn), "\n".join(_lines(drawn)))


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


def _tree(graph: "Graph", node: "GraphNode", depth: int) -> Iterator[str]:
    about = f" -> {node.about}" if node.kind == "sink" else f": {node.about}" if node.about else ""
    more = ", ".join(filter(None, (node.state, node.figures)))
    also = f" (reads {', '.join(node.inputs)})" if len(node.inputs) > 1 else ""
    yield f"{'  ' * depth}{node.kind} {node.name}{also}{about}{f'; {more}' if more else ''}"
    for reader in graph.nodes:
        if node.name in reader.inputs:
            yield from _tree(graph, reader, depth + 1)
