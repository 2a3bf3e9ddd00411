"""`headrace pipeline`: the commands, and the pipeline that a command is about: in a file, or a project."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headrace.cli.support.interrupts import ctrl_c_waits
from headrace.cli.support.lazy import Lazy, LazyGroup
from headrace.cli.support.session import Session
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import DIRECTORY, PipelineState
from headrace.pipeline.storage.files import is_remote, local_directory
from headrace.system.extras import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipeline.declaration import Pipeline

SPECS: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")
COMMANDS: Final = {
    "check": Lazy("headrace.cli.pipeline.plan", "check", "Check whether a pipeline would run.", needs=SPARK),
    "explain": Lazy("headrace.cli.pipeline.plan", "explain", "Show what a pipeline would do.", needs=SPARK),
    "graph": Lazy("headrace.cli.pipeline.graph", "graph", "Show the steps of a pipeline.", needs=SPARK),
    "init": Lazy("headrace.cli.pipeline.init", "init", "Create a pipeline to start from."),
    "pack": Lazy(
        "headrace.cli.pipeline.pack", "pack", "Build the environment that executors need.", needs=SPARK
    ),
    "replay": Lazy("headrace.cli.pipeline.state", "replay", "Read the records since a time again."),
    "reset": Lazy("headrace.cli.pipeline.state", "reset", "Delete the checkpoints of a pipeline."),
    "run": Lazy("headrace.cli.pipeline.run", "run", "Run a pipeline, and show its progress.", needs=SPARK),
    "status": Lazy("headrace.cli.pipeline.state", "status", "Show the state of pipelines."),
    "stop": Lazy("headrace.cli.pipeline.state", "stop", "Stop a pipeline after its current batches."),
    "test": Lazy("headrace.cli.pipeline.test", "test", "Run a pipeline on records from files.", needs=SPARK),
}


@click.group(cls=LazyGroup, table=COMMANDS)
def pipeline() -> None:
    """Run pipelines on Spark: from topics, through functions of DataFrames, into topics and tables."""


class StateLocation(click.Path):
    """A directory of this machine, given as a path or as a file: URL, or the URL of an object store."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        given = os.fspath(value)
        if is_remote(given):
            return value
        try:
            directory = local_directory(given, "the state of a pipeline")
        except PipelineError as error:
            self.fail(str(error), param, ctx)
        return super().convert(directory if given.lower().startswith("file:") else given, param, ctx)


file_argument = click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
state_option = click.option(
    "--state",
    "root",
    metavar="DIR|URL",
    type=StateLocation(file_okay=False, path_type=Path),
    help="The directory of checkpoints, or a URL: s3a://…, gs://…, abfss://…. "
    f"Default: {DIRECTORY} beside the file.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedPipeline:
    """A pipeline from a file, the cluster it talks to, and its state."""

    path: Path
    pipeline: "Pipeline"
    bootstrap: str
    state: PipelineState


def open_pipeline(session: Session, path: Path, root: Path | str | None) -> OpenedPipeline:
    """Load the pipeline in a file; change to the file's directory, because its paths are relative to it."""
    from headrace.client.wire.librdkafka import librdkafka_settings  # noqa: PLC0415
    from headrace.pipeline.loader import load  # noqa: PLC0415  the file may import Spark

    path = with_suffix(path).absolute()
    root = root.absolute() if isinstance(root, Path) else root
    if project(path) is not None:
        raise PipelineError(
            f"{path.name} is a project of Spark Declarative Pipelines: it can be checked, run and stopped"
        )
    if path.parent.is_dir():
        os.chdir(path.parent)
    pipeline = load(path)
    if not pipeline.client and session.command_config_path is not None:
        pipeline.use_client(
            {
                name: str(value).lower() if isinstance(value, bool) else value
                for name, value in librdkafka_settings(session.connection.security).items()
            }
        )
    return OpenedPipeline(
        path=path,
        pipeline=pipeline,
        bootstrap=session.named or pipeline.bootstrap or session.bootstrap,
        state=PipelineState(root or path.parent / DIRECTORY, pipeline.name),
    )


def inspection_session(opened: OpenedPipeline) -> "SparkSession":
    """Return a small Spark session that can inspect a pipeline, but not run it."""
    from headrace.spark.launcher import session  # noqa: PLC0415

    settings = opened.pipeline.settings
    with ctrl_c_waits():
        return session(opened.pipeline.name, master="local[1]", settings=settings, log=Path(os.devnull))


def with_suffix(path: Path) -> Path:
    """Return trucks.py for `trucks` if only that file exists."""
    beside = path.with_name(f"{path.name}.py")
    return beside if not path.exists() and beside.is_file() else path


def project(path: Path) -> Path | None:
    """Return the specification of a project if `path` is its file or its directory."""
    specs = [path] if path.name in SPECS else [path / name for name in SPECS]
    return next((spec.absolute() for spec in specs if spec.is_file()), None)
