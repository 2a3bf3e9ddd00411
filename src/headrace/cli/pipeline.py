"""`headrace pipeline`: init, check, explain, run, status, stop, reset, replay."""

from typing import Final

import click

from headrace.cli.lazy import Lazy, LazyGroup

COMMANDS: Final = {
    "check": Lazy("headrace.cli.pipeline_check", "check", "Look whether a pipeline would run."),
    "explain": Lazy("headrace.cli.pipeline_explain", "explain", "Show what a pipeline is about to do."),
    "init": Lazy("headrace.cli.pipeline_init", "init", "Make a pipeline to begin with."),
    "replay": Lazy("headrace.cli.pipeline_again", "replay", "Have records since some time read again."),
    "reset": Lazy("headrace.cli.pipeline_again", "reset", "Forget how far a pipeline is."),
    "run": Lazy("headrace.cli.pipeline_run", "run", "Run a pipeline, and show how it gets on."),
    "status": Lazy("headrace.cli.pipeline_status", "status", "Show how pipelines stand."),
    "stop": Lazy("headrace.cli.pipeline_status", "stop", "End a pipeline after the batches it is at."),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def pipeline() -> None:
    """Run pipelines on Spark: from topics, through functions of DataFrames, into topics and tables."""
