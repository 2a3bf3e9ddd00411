"""`headrace pipeline status`, `stop`, `reset` and `replay`: the state of pipelines."""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline import commands
from headrace.cli.support.output import UNKNOWN, Drawable, count, size, table, together
from headrace.cli.support.session import Session, confirm, options, time_ms, yes_option
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.progress import Figures
from headrace.pipeline.state import DIRECTORY, PipelineState
from headrace.pipeline.storage.files import state_root

if TYPE_CHECKING:
    from headrace.pipeline.status import PipelineStatus

COLUMNS: Final = ("query", "state", "batch", "in/s", "out/s", "lag", "took", "state rows", "watermark")
_STOP_TIMEOUT_S: Final = 180.0
_POLL_S: Final = 0.1


@click.command()
@click.argument("name", metavar="[FILE|NAME]", required=False)
@commands.state_option
@options
def status(session: Session, name: str | None, root: Path | str | None) -> None:
    """Show the state of pipelines:  headrace pipeline status

    Of one pipeline, or of all that have run on the cluster in the last days: the last batch, rates and lag of
    each query. Whether a pipeline runs is certain only on the machine with its state: beside its file, or in
    --state.
    """
    from headrace.pipeline.status import statuses  # noqa: PLC0415

    state = None if name is None else _state(session, name, root)
    directory = state_root(str(root or DIRECTORY))
    known = statuses(
        session.connection,
        directory if state is None else state.path.parent,
        None if state is None else state.path.name,
        time.time_ns() // 1_000_000,
    )
    if state is not None and not known:
        raise PipelineError(f"pipeline {state.path.name} is not known: has it ever run?")
    nothing = "no pipeline has run on this cluster in the last days"
    session.show(known, (lambda: together(_parts(known))) if known else nothing)


@click.command()
@click.argument("name", metavar="FILE|NAME")
@commands.state_option
@options
def stop(session: Session, name: str, root: Path | str | None) -> None:
    """Stop a pipeline after its current batches:  headrace pipeline stop trucks.py"""
    state = _state(session, name, root)
    pid = state.stop()
    if pid is None:
        raise PipelineError(
            f"pipeline {state.path.name} is not running (its state is in {state.path.parent})"
        )
    deadline = time.monotonic() + _STOP_TIMEOUT_S
    while state.pid == pid:
        if time.monotonic() > deadline:
            raise PipelineError(f"process {pid} has not stopped within {_STOP_TIMEOUT_S:g} s")
        time.sleep(_POLL_S)
    session.show({"pipeline": state.path.name, "pid": pid}, f"stopped {state.path.name}, process {pid}")


@click.command()
@commands.file_argument
@commands.state_option
@yes_option
@options
def reset(session: Session, path: Path, root: Path | str | None, *, yes: bool) -> None:
    """Delete the checkpoints of a pipeline:  headrace pipeline reset trucks.py

    Its windows and other state are deleted, too. Its sinks keep their rows, and get the rows of all records
    in the source topics once more.
    """
    opened = _stopped(session, path, root)
    _confirm(opened, "Delete its checkpoints, so that it reads everything again?", yes=yes)
    deleted = opened.state.reset()
    name = opened.pipeline.name
    lines = [
        f"reset {name}: deleted {count(len(deleted), 'checkpoint')}, its sinks keep their rows",
        f"headrace pipeline run {path} starts anew",
        *_parquet_remarks(opened),
    ]
    session.show({"pipeline": name, "checkpoints": deleted}, "\n".join(lines))


@click.command()
@commands.file_argument
@click.option(
    "--from", "since", metavar="TIME", required=True, help="A time: 2026-01-01, 2026-01-31T12:00Z, or @MS."
)
@commands.state_option
@yes_option
@options
def replay(session: Session, path: Path, since: str, root: Path | str | None, *, yes: bool) -> None:
    """Read the records since a time again:  headrace pipeline replay trucks.py --from 2026-01-01

    The next run starts with these records, without checkpoints, windows or other state. Its sinks keep their
    rows, and get the rows of these records once more.
    """
    since_ms = time_ms(since, "--from")
    opened = _stopped(session, path, root)
    _confirm(opened, f"Read everything since {when(since_ms)} again?", yes=yes)
    opened.state.replay(since_ms)
    name = opened.pipeline.name
    lines = [
        f"{name} starts with records since {when(since_ms)}: headrace pipeline run {path}",
        "its sinks keep their rows, and get the rows of that time again",
        *_parquet_remarks(opened),
    ]
    session.show({"pipeline": name, "since_ms": since_ms}, "\n".join(lines))


def _state(session: Session, name: str, root: Path | str | None) -> PipelineState:
    """Return the state of a pipeline, given its file, the directory of its project, or its name."""
    path = commands.with_suffix(Path(name))
    if (spec := commands.project(path)) is not None:
        return PipelineState(root or spec.parent / DIRECTORY, spec.parent.name)
    if path.is_file():
        return commands.open_pipeline(session, path, root).state
    if path.suffix == ".py" or len(path.parts) > 1:
        raise PipelineError(f"there is no file {name}")
    return PipelineState(root or Path(DIRECTORY), name)


def _stopped(session: Session, path: Path, root: Path | str | None) -> commands.OpenedPipeline:
    opened = commands.open_pipeline(session, path, root)
    pid = opened.state.pid
    if pid is not None:
        raise PipelineError(
            f"pipeline {opened.pipeline.name} is running, as process {pid}: "
            f"`headrace pipeline stop {path}` stops it"
        )
    return opened


def _confirm(opened: commands.OpenedPipeline, question: str, *, yes: bool) -> None:
    name = opened.pipeline.name
    confirm(f"Pipeline {name}: {question}", action=f"for {name}", declined="nothing was changed", yes=yes)


def _parquet_remarks(opened: commands.OpenedPipeline) -> Iterator[str]:
    """Yield a remark for each Parquet sink: Spark skips batches of numbers that its directory has already."""
    from headrace.pipeline.targets import Parquet  # noqa: PLC0415

    for sink in opened.pipeline.sinks.values():
        directory = sink.target.directory if isinstance(sink.target, Parquet) else None
        if directory is not None and (directory / "_spark_metadata").is_dir():
            yield f"{sink.name}: move {directory} away first, or the run will refuse to add to it"


def _parts(known: "list[PipelineStatus]") -> Iterator[Drawable]:
    for each in known:
        process = f", process {each.pid}" if each.pid is not None else ""
        yield f"pipeline {each.pipeline}: {each.state}{process}"
        if each.queries:
            prefix = f"{each.pipeline}."
            rows = [
                (*row(query, query.query.removeprefix(prefix)), when(query.at_ms)) for query in each.queries
            ]
            yield table((*COLUMNS, "when"), rows)
        for query in each.queries:
            yield from troubles(query)


def troubles(figures: Figures) -> Iterator[str]:
    """Yield lines for broken expectations, newer schemas, restarts, and the error of a query."""
    if figures.newer_rows:
        records = count(figures.newer_rows, "record")
        yield f"{figures.query}: {records} of a newer schema than the columns: a restart reads its new fields"
    for name, rows in figures.broken.items():
        if rows:
            yield f"{figures.query}: expectation {name} broken by {count(rows, 'row')}"
    if figures.reason:
        restarted = f"restarted {count(figures.restarts, 'time')}"
        yield f"{figures.query} was {restarted}, the last time because: {figures.reason}"
    if figures.error:
        yield f"{figures.query} {figures.event}: {figures.error}"


def row(figures: Figures, name: str) -> Sequence[object]:
    """Return the row of a query, for COLUMNS."""
    last = figures.last
    if last is None:
        return (name, figures.event, *[None] * (len(COLUMNS) - 2))
    moving = figures.is_moving
    return (
        name,
        "running" if figures.event == "batch" else figures.event,
        last.batch,
        rate(last.rows_per_s if moving else 0),
        rate(last.written_per_s if moving else 0),
        f"{last.lag:,}",
        seconds(last.took_ms),
        f"{last.state_rows:,} ({size(last.state_bytes)})" if last.state_rows else None,
        watermark(last.watermark),
    )


def rate(per_s: float) -> str:
    return f"{per_s:,.0f}" if per_s >= 10 or not per_s else f"{per_s:.1f}"


def seconds(milliseconds: int) -> str:
    return f"{milliseconds / 1000:.1f} s"


def watermark(text: str) -> str:
    """Return Spark's watermark, or `-` for 1970, which Spark reports while there is none."""
    return UNKNOWN if not text or text.startswith("1970-") else text.replace(".000Z", "Z")


def when(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if at_ms else UNKNOWN
