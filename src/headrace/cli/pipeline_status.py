"""`headrace pipeline status` and `stop`."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline_files import found, open_pipeline, project, state_option
from headrace.cli.pipeline_tables import COLUMNS, row, when
from headrace.cli.session import Session, options, table, together
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import DIRECTORY, State

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.pipeline.status import Standing

_END_S: Final = 180.0
_LOOK_S: Final = 0.1


@click.command()
@click.argument("name", metavar="[FILE|NAME]", required=False)
@state_option
@options
@click.pass_obj
def status(session: Session, name: str | None, root: Path | None) -> None:
    """Show how pipelines stand:  headrace pipeline status

    Of one, or of all that have run on the cluster in the last days: their queries' last batches, rates and
    lag. Whether one runs is known for sure where its state is: beside its file, or in --state.
    """
    from headrace.pipeline.status import standings  # noqa: PLC0415

    state = None if name is None else _state(session, name, root)
    bare = root or Path(DIRECTORY)
    known = standings(
        session.bootstrap,
        bare if state is None else state.path.parent,
        None if state is None else state.path.name,
        time.time_ns() // 1_000_000,
    )
    if state is not None and not known:
        raise PipelineError(f"nothing is known of a pipeline {state.path.name}: has it ever run?")
    nothing = "no pipeline has run on this cluster in the last days"
    session.show(known, (lambda: together(_parts(known))) if known else nothing)


@click.command()
@click.argument("name", metavar="FILE|NAME")
@state_option
@options
@click.pass_obj
def stop(session: Session, name: str, root: Path | None) -> None:
    """End a pipeline after the batches it is at:  headrace pipeline stop trucks.py"""
    state = _state(session, name, root)
    pid = state.stop()
    if pid is None:
        raise PipelineError(
            f"pipeline {state.path.name} is not running (its state is in {state.path.parent})"
        )
    deadline = time.monotonic() + _END_S
    while state.pid == pid:
        if time.monotonic() > deadline:
            raise PipelineError(f"process {pid} was told to end, and has not after {_END_S:g} s")
        time.sleep(_LOOK_S)
    session.show({"pipeline": state.path.name, "pid": pid}, f"stopped {state.path.name}, process {pid}")


def _state(session: Session, name: str, root: Path | None) -> State:
    """The state of a pipeline that is named by its file, by its project's directory, or by its name."""
    path = found(Path(name))
    spec = project(path)
    if spec is not None:
        home = spec.absolute().parent
        return State(root or home / DIRECTORY, home.name)
    if path.is_file():
        return open_pipeline(session, path, root).state
    if path.suffix == ".py" or len(path.parts) > 1:
        raise PipelineError(f"there is no file {name}")
    return State(root or Path(DIRECTORY), name)


def _parts(known: "list[Standing]") -> "Iterator[RenderableType]":
    for each in known:
        where = f", process {each.pid}" if each.pid is not None else ""
        yield f"pipeline {each.pipeline}: {each.state}{where}"
        if each.queries:
            prefix = f"{each.pipeline}."
            rows = [
                (*row(query, query.query.removeprefix(prefix)), when(query.at_ms)) for query in each.queries
            ]
            yield table((*COLUMNS, "when"), rows)
        for query in each.queries:
            if query.error:
                yield f"{query.query} failed: {query.error}"
