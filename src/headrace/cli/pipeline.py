"""`headrace pipeline`: init, check, explain, run, status, stop, reset, replay."""

from typing import Final

import click

from headrace.cli.lazy import Lazy, LazyGroup

COMMANDS: Final = {
    "check": Lazy("headrace.cli.pipeline_check", "check", "Look whether a pipeline would run."),
    "explain": Lazy("headrace.cli.pipeline_explain", "explain", "Show what a pipeline is about to do."),
    "run": Lazy("headrace.cli.pipeline_run", "run", "Run a pipeline, and show how it gets on."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def pipeline() -> None:
    """Run pipelines on Spark: from topics, through functions of DataFrames, into topics and tables."""
