"""`headrace pipeline run`: until Ctrl-C, or to the end of what is there."""

import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headrace.cli.interrupts import STOPPING, ctrl_c_waits
from headrace.cli.pipeline_files import Opened, found, open_pipeline, project, state_option
from headrace.cli.pipeline_view import watching
from headrace.cli.session import Session, options
from headrace.cli.texts import count, pairs
from headrace.pipeline.errors import PipelineError
from headrace.spark.launcher import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headrace.pipeline.progress import Observer
    from headrace.pipeline.runner import Runner


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--master", metavar="URL", default=LOCAL, show_default=True, help="A Spark cluster: spark://…")
@state_option
@click.option("--once", is_flag=True, help="To the end of what is there now, then end.")
@click.option("--set", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of Spark's.")
@click.option("--trace", is_flag=True, help="If it fails, also print the stack of Java's frames.")
@options
@click.pass_obj
def run(
    session: Session,
    path: Path,
    root: Path | None,
    *,
    master: str,
    once: bool,
    settings: Sequence[str],
    trace: bool,
) -> None:
    """Run a pipeline:  headrace pipeline run trucks.py

    Topics that results or dead letters go to are created if they are not there. Ctrl-C ends it after the
    batches that are under way, and the same command goes on from there. FILE may also be the directory of a
    Spark Declarative Pipelines project: it runs to the end of what is there.
    """
    own = pairs(settings, "--set")
    if project(found(path)) is not None:
        from headrace.cli.pipeline_triggered import run_project  # noqa: PLC0415

        run_project(session, found(path), root, master=master, settings=own)
        return
    opened = open_pipeline(session, path, root)
    try:
        _run(session, opened, master, {**opened.pipeline.settings, **own}, once=once)
    except PipelineError as error:
        if trace:
            _print_trace(error)
        raise


def _run(session: Session, opened: Opened, master: str, settings: "Mapping[str, str]", *, once: bool) -> None:
    with opened.state.running(), ExitStack() as stack:
        _prepare(session, opened)
        view = stack.enter_context(watching(session, opened, master))
        runner, observers = _start_spark(stack, opened, master, settings)
        observers.append(view)
        with _ended_by_signals(session, runner):
            runner.run(to_the_end=once)


def _prepare(session: Session, opened: Opened) -> None:
    """Whatever can go wrong without Spark had better do so before Spark has started."""
    from headrace.pipeline.parquet_files import check_directory  # noqa: PLC0415
    from headrace.pipeline.targets import Parquet  # noqa: PLC0415
    from headrace.pipeline.topics import create, missing_topics  # noqa: PLC0415

    for sink in opened.pipeline.sinks.values():
        if isinstance(sink.target, Parquet) and sink.target.directory is not None:
            name = opened.pipeline.query_name(sink.name)
            check_directory(sink.target.directory, opened.state.checkpoint(name))
    new = missing_topics(opened.pipeline, opened.bootstrap)
    create(opened.pipeline, opened.bootstrap, new)
    for each in new if not session.as_json else ():
        click.echo(f"created topic {each.name}: {count(each.partitions, 'partition')}")


def _start_spark(
    stack: ExitStack, opened: Opened, master: str, settings: "Mapping[str, str]"
) -> "tuple[Runner, list[Observer]]":
    from headrace.pipeline.observers import Groups, History  # noqa: PLC0415
    from headrace.pipeline.runner import Runner  # noqa: PLC0415  it is Spark's from here on
    from headrace.spark.launcher import session as spark_session  # noqa: PLC0415

    log = opened.state.path / "spark.log"
    with ctrl_c_waits():
        spark = spark_session(opened.pipeline.name, master=master, settings=settings, log=log)
        stack.callback(spark.stop)
    observers: list[Observer] = [
        stack.enter_context(closing(Groups(opened.bootstrap, opened.pipeline.client))),
        stack.enter_context(closing(History(opened.bootstrap, opened.pipeline.client))),
    ]
    return Runner(spark, opened.pipeline, opened.bootstrap, opened.state, observers), observers


@contextmanager
def _ended_by_signals(session: Session, runner: "Runner") -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        runner.stop()
        if not session.as_json:
            click.echo("ending after the batches that are under way; once more ends it at once")

    # Spark has put a handler for Ctrl-C there that would cut its batches off.
    before = {each: signal.signal(each, stop) for each in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_trace(error: PipelineError) -> None:
    cause = error.__cause__
    traceback.print_exception(error if cause is None else cause, file=sys.stderr)
    frames = getattr(cause, "_stackTrace", None)  # of Java's
    if frames:
        click.echo(frames, err=True)
