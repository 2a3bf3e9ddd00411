"""`headrace pipeline reset` and `replay`: a pipeline begins anew."""

from collections.abc import Iterator
from pathlib import Path

import click

from headrace.cli.asking import ask
from headrace.cli.pipeline_files import Opened, open_pipeline, state_option
from headrace.cli.pipeline_tables import when
from headrace.cli.session import Session, options
from headrace.cli.texts import count, time_ms
from headrace.pipeline.errors import PipelineError

yes_option = click.option("--yes", is_flag=True, help="Do not ask.")


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@state_option
@yes_option
@options
@click.pass_obj
def reset(session: Session, path: Path, root: Path | None, *, yes: bool) -> None:
    """Forget how far a pipeline is:  headrace pipeline reset trucks.py

    Its checkpoints go, windows and other state among them. What is in its sinks stays, and gets the rows of
    all that is still in the source topics once more.
    """
    opened = _stopped(session, path, root)
    _ask(opened, "Forget how far it is, so that it reads everything again?", yes=yes)
    forgotten = opened.state.reset()
    name = opened.pipeline.name
    said = [
        f"reset {name}: {count(len(forgotten), 'checkpoint')} forgotten, what is in its sinks stays",
        f"headrace pipeline run {path} begins anew",
        *_remarks(opened),
    ]
    session.show({"pipeline": name, "checkpoints": forgotten}, "\n".join(said))


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--from", "since", metavar="TIME", required=True, help="2026-01-01, 2026-01-31T12:00Z, or @MS.")
@state_option
@yes_option
@options
@click.pass_obj
def replay(session: Session, path: Path, since: str, root: Path | None, *, yes: bool) -> None:
    """Have records read again:  headrace pipeline replay trucks.py --from 2026-01-01

    The next run begins with the records since then, without checkpoints, windows or other state of before.
    What is in its sinks stays, and gets these rows once more.
    """
    since_ms = time_ms(since, "--from")
    opened = _stopped(session, path, root)
    _ask(opened, f"Have it read everything since {when(since_ms)} again?", yes=yes)
    opened.state.replay(since_ms)
    name = opened.pipeline.name
    said = [
        f"{name} begins with records since {when(since_ms)}: headrace pipeline run {path}",
        "topics and tables that have the rows of that time get them again: they stay as they are",
        *_remarks(opened),
    ]
    session.show({"pipeline": name, "since_ms": since_ms}, "\n".join(said))


def _stopped(session: Session, path: Path, root: Path | None) -> Opened:
    opened = open_pipeline(session, path, root)
    pid = opened.state.pid
    if pid is not None:
        raise PipelineError(
            f"pipeline {opened.pipeline.name} is running, as process {pid}: "
            f"`headrace pipeline stop {path}` ends it"
        )
    return opened


def _ask(opened: Opened, question: str, *, yes: bool) -> None:
    """Return if it is fine."""
    name = opened.pipeline.name
    if not yes:
        ask(f"Pipeline {name}: {question}", allowed=f"for {name}", declined="nothing was changed")


def _remarks(opened: Opened) -> Iterator[str]:
    """Spark knows the batches of Parquet files by number, and these begin anew."""
    from headrace.pipeline.targets import Parquet  # noqa: PLC0415

    for sink in opened.pipeline.sinks.values():
        directory = sink.target.directory if isinstance(sink.target, Parquet) else None
        if directory is not None and (directory / "_spark_metadata").is_dir():
            yield f"{sink.name}: move {directory} away first, or the run will refuse to add to it"
