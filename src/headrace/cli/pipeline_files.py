"""Which pipeline a command is about: a Python file, or a project of Spark's own declarative pipelines."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headrace.cli.interrupts import ctrl_c_waits
from headrace.cli.session import Session
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.paths import local_directory
from headrace.pipeline.state import DIRECTORY, State

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.pipeline.declaration import Pipeline

SPECS: Final = ("spark-pipeline.yml", "spark-pipeline.yaml")


class LocalDirectory(click.Path):
    """A directory of this machine, given as a path or as a file: URL."""

    def __init__(self, what: str) -> None:
        super().__init__(file_okay=False, path_type=Path)
        self._what = what

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        given = os.fspath(value)
        try:
            found = local_directory(given, self._what)
        except PipelineError as error:
            self.fail(str(error), param, ctx)
        return super().convert(found if given.lower().startswith("file:") else given, param, ctx)


state_option = click.option(
    "--state",
    "root",
    metavar="DIR",
    type=LocalDirectory("the state of a pipeline"),
    help=f"Where checkpoints are kept; {DIRECTORY} beside the file if not given.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A pipeline out of a file, the cluster it talks to, and its state."""

    path: Path
    pipeline: "Pipeline"
    bootstrap: str
    state: State


def open_pipeline(session: Session, path: Path, root: Path | None) -> Opened:
    """The pipeline in the file. Paths that it names count from where it lies, so that is where we go."""
    from headrace.pipeline.loader import load  # noqa: PLC0415  the file may well import Spark

    path, root = found(path).absolute(), root and root.absolute()
    if project(path) is not None:
        raise PipelineError(
            f"{path.name} is a project of Spark's, for triggered runs: it can be checked, run and stopped"
        )
    if path.parent.is_dir():
        os.chdir(path.parent)
    pipeline = load(path)
    return Opened(
        path=path,
        pipeline=pipeline,
        bootstrap=session.named or pipeline.bootstrap or session.bootstrap,
        state=State(root or path.parent / DIRECTORY, pipeline.name),
    )


def quiet_session(opened: Opened) -> "SparkSession":
    """A small session of Spark's, to look at a pipeline and not to run it."""
    from headrace.spark.launcher import session  # noqa: PLC0415

    settings = opened.pipeline.settings
    with ctrl_c_waits():
        return session(opened.pipeline.name, master="local[1]", settings=settings, log=Path(os.devnull))


def found(path: Path) -> Path:
    """`trucks` may stand for trucks.py."""
    beside = path.with_name(f"{path.name}.py")
    return beside if not path.exists() and beside.is_file() else path


def project(path: Path) -> Path | None:
    """The specification of a triggered pipeline, if it is one: its file, or the directory it is in."""
    if path.name in SPECS and path.is_file():
        return path
    return next((path / name for name in SPECS if (path / name).is_file()), None)
