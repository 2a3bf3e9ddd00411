"""`headrace pipeline run`: run a pipeline until Ctrl-C, or to the end of its topics; show its progress."""

import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline.commands import (
    OpenedPipeline,
    file_argument,
    open_pipeline,
    project,
    state_option,
    with_suffix,
)
from headrace.cli.pipeline.state import COLUMNS, row, seconds, troubles, watermark
from headrace.cli.support.interrupts import STOPPING, ctrl_c_waits
from headrace.cli.support.output import UNKNOWN, Drawable, count, lines, size, table, together
from headrace.cli.support.session import Session, options, pairs
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.progress import Figures, in_all
from headrace.pipeline.restarts import Restart
from headrace.pipeline.state import DIRECTORY
from headrace.spark.launcher import LOCAL, is_submitted
from headrace.spark.packed import absolute, use_environment

if TYPE_CHECKING:
    from headrace.pipeline.progress import Observer, Progress
    from headrace.pipeline.runner import Runner

_REFRESHES_PER_S: Final = 4
_WORST: Final = 3  # partitions that are named


@click.command()
@file_argument
@click.option(
    "--master",
    metavar="URL",
    help="A Spark cluster: spark://HOST:7077, yarn, k8s://…, or sc://HOST for Spark Connect. "
    f"Default: {LOCAL}.",
)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    help="Where the driver runs: here, or on the cluster.",
)
@click.option(
    "--environment",
    metavar="ARCHIVE|DIR",
    help="The Python environment for the cluster: an archive of `headrace pipeline pack`, or a directory "
    "that all machines have.",
)
@state_option
@click.option("--once", is_flag=True, help="Read to the current end of the topics, then stop.")
@click.option(
    "--set", "--conf", "settings", metavar="NAME=VALUE", multiple=True, help="A setting of Spark's."
)
@click.option(
    "--restart",
    "restarts",
    metavar="N",
    type=click.IntRange(0),
    help="Restart a failed query up to N times in a row; 0 is never. Default: as the pipeline says, or 0.",
)
@click.option("--trace", is_flag=True, help="If it fails, also print the Java stack trace.")
@options
def run(
    session: Session,
    path: Path,
    root: Path | str | None,
    *,
    master: str | None,
    deploy_mode: str,
    environment: str | None,
    once: bool,
    settings: Sequence[str],
    restarts: int | None,
    trace: bool,
) -> None:
    """Run a pipeline:  headrace pipeline run trucks.py

    Topics for results and dead letters are created if they do not exist. Ctrl-C stops the pipeline after its
    current batches, and the same command continues from there. FILE may also be the directory of a Spark
    Declarative Pipelines project, which runs to the current end of its topics.
    """
    own = pairs(settings, "--set")
    if project(with_suffix(path)) is not None:
        from headrace.cli.pipeline.triggered import run_project  # noqa: PLC0415

        run_project(session, with_suffix(path), root, master=master or LOCAL, settings=own)
        return
    environment = environment and absolute(environment)  # before the directory is changed to that of FILE
    opened = open_pipeline(session, path, root)
    if restarts is not None:
        opened.pipeline.restart = replace(opened.pipeline.restart or Restart(), limit=restarts)
    if deploy_mode == "cluster":
        from headrace.cli.pipeline.submit import submit  # noqa: PLC0415

        submit(session, opened, root, master=master, environment=environment, settings=own, once=once)
        return
    if environment is not None:
        own = {**use_environment(environment), **own}
    master = master or ("of spark-submit" if is_submitted() else LOCAL)
    try:
        _run(session, opened, master, {**opened.pipeline.settings, **own}, once=once)
    except PipelineError as error:
        if trace:
            _print_trace(error)
        raise


def _run(
    session: Session, opened: OpenedPipeline, master: str, settings: Mapping[str, str], *, once: bool
) -> None:
    with opened.state.running(), ExitStack() as stack:
        _prepare(session, opened)
        view = stack.enter_context(_view(session, opened, master))
        runner, observers = _start_spark(stack, opened, master, settings)
        observers.append(view)
        with _stopped_by_signals(session, runner):
            runner.run(to_the_end=once)


def _prepare(session: Session, opened: OpenedPipeline) -> None:
    """Check directories and create topics before Spark starts, so that their errors come early."""
    from headrace.pipeline.embedded import prepare  # noqa: PLC0415

    new = prepare(opened.pipeline, opened.bootstrap, opened.state)
    for each in new if not session.as_json else ():
        click.echo(f"created topic {each.name}: {count(each.partitions, 'partition')}")


def _start_spark(
    stack: ExitStack, opened: OpenedPipeline, master: str, settings: Mapping[str, str]
) -> "tuple[Runner, list[Observer]]":
    from headrace.pipeline.observers import Groups, History  # noqa: PLC0415
    from headrace.pipeline.runner import Runner  # noqa: PLC0415  imports Spark
    from headrace.spark.launcher import session as spark_session  # noqa: PLC0415
    from headrace.spark.launcher import stop  # noqa: PLC0415

    home = opened.state.path
    log = (home if isinstance(home, Path) else Path(DIRECTORY, home.name).absolute()) / "spark.log"
    with ctrl_c_waits():
        spark = spark_session(opened.pipeline.name, master=master, settings=settings, log=log)
        stack.callback(stop, spark)
    observers: list[Observer] = [
        stack.enter_context(closing(Groups(opened.bootstrap, opened.pipeline.client))),
        stack.enter_context(closing(History(opened.bootstrap, opened.pipeline.client))),
    ]
    return Runner(spark, opened.pipeline, opened.bootstrap, opened.state, observers), observers


@contextmanager
def _stopped_by_signals(session: Session, runner: "Runner") -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        runner.stop()
        if not session.as_json:
            click.echo("stopping after the current batches; Ctrl-C again stops at once")

    # Spark has installed a handler for Ctrl-C that would interrupt its batches.
    before = {each: signal.signal(each, stop) for each in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _print_trace(error: PipelineError) -> None:
    cause = error.__cause__
    traceback.print_exception(error if cause is None else cause, file=sys.stderr)
    frames = getattr(cause, "_stackTrace", None)  # of Java
    if frames:
        click.echo(frames, err=True)


# -- progress: a live table on a terminal, a line for every batch elsewhere ------------------------


@contextmanager
def _view(session: Session, opened: OpenedPipeline, master: str) -> "Iterator[Observer]":
    """Yield an observer that shows progress; print a last line for each query at the end of the block."""
    figures = QueryFigures()
    names = [opened.pipeline.query_name(each) for each in opened.pipeline.sinks]
    head = f"pipeline {opened.pipeline.name} on {opened.bootstrap}, Spark {master}"
    if session.as_json:
        yield lambda progress: _print(progress.encode())
        return
    try:
        if not sys.stdout.isatty():
            click.echo(f"{head}: starting")
            yield figures.print_lines
        else:
            with _live(figures, head, names):
                yield figures
    finally:
        for each in figures.all():
            click.echo(in_short(each))


class QueryFigures:
    """The figures of every query; Spark's threads update them, ours reads them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}

    def __call__(self, progress: "Progress") -> None:
        with self._lock:
            self._figures.setdefault(progress.query, Figures(progress.query)).add(progress)

    def print_lines(self, progress: "Progress") -> None:
        self(progress)
        if (
            progress.event in {"started", "stalled", "failed", "restarting"}
            or progress.rows
            or progress.written
        ):
            _print(in_one_line(progress))

    def last(self, query: str) -> "Progress | None":
        """Return the last batch of a query."""
        with self._lock:
            return self._figures[query].last if query in self._figures else None

    def all(self) -> list[Figures]:
        with self._lock:
            return [self._figures[name] for name in sorted(self._figures)]


def _print(line: str | bytes) -> None:
    click.echo(line)
    sys.stdout.flush()


@contextmanager
def _live(figures: QueryFigures, head: str, names: list[str]) -> Iterator[None]:
    from rich.console import Console  # noqa: PLC0415  slow to import
    from rich.live import Live  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    began = time.monotonic()
    console = Console()

    def draw() -> Text:
        drawn = draw_queries(head, figures.all(), names, time.monotonic() - began)
        return Text.from_ansi("\n".join(lines(drawn, console.width, styled=True)))

    with Live(console=console, get_renderable=draw, refresh_per_second=_REFRESHES_PER_S, transient=True):
        yield


def draw_queries(head: str, queries: Sequence[Figures], names: Sequence[str], since_s: float) -> Drawable:
    """Return a table of all queries, also of those that have not started, and remarks on lag and errors."""
    shown = {each: Figures(each) for each in names} | {each.query: each for each in queries}
    rows = [row(each, each.query.partition(".")[2]) for each in shown.values()]
    parts: list[Drawable] = [
        f"{head}, for {timedelta(seconds=int(since_s))}; Ctrl-C stops it",
        table(COLUMNS, rows),
    ]
    if remarks := list(_remarks(list(shown.values()))):
        parts.append("\n".join(remarks))
    return together(parts)


def _remarks(queries: Sequence[Figures]) -> Iterator[str]:
    for each in queries:
        if worst := each.worst(_WORST):
            partitions = ", ".join(f"{partition} {lag:,}" for partition, lag in worst)
            yield f"{each.query} lags most in {partitions}"
    for each in queries:
        yield from troubles(each)


def in_one_line(progress: "Progress") -> str:
    """Return the log line of a batch, a start or an end."""
    if progress.event in {"failed", "stalled"}:
        return f"{progress.query} {progress.event}: {progress.error}"
    if progress.event == "restarting":
        number = f" (restart {progress.restarts})" if progress.restarts else ""
        return f"{progress.query} restarts{number}: {progress.error}"
    if progress.event != "batch":
        return f"{progress.query} {progress.event}"
    parts = [
        f"{progress.query} batch {progress.batch}: {_flow(progress)}",
        seconds(progress.took_ms),
        f"lag {progress.lag:,}",
    ]
    if progress.state_rows:
        parts.append(f"state {progress.state_rows:,} rows, {size(progress.state_bytes)}")
    if (mark := watermark(progress.watermark)) != UNKNOWN:
        parts.append(f"watermark {mark}")
    if progress.newer_rows:
        parts.append(f"{count(progress.newer_rows, 'record')} of a newer schema than the columns")
    parts += [
        f"expectation {name} broken by {count(rows, 'row')}"
        for name, rows in in_all(progress.broken).items()
        if rows
    ]
    return ", ".join(parts)


def in_short(figures: Figures) -> str:
    """Return the last line about a query."""
    ended = "ended" if figures.event in {"batch", "idle", "started"} else figures.event
    batches = f"{figures.batches:,} batch{'' if figures.batches == 1 else 'es'}"
    lag = f", lag {figures.last.lag:,}" if figures.last is not None else ""
    return f"{figures.query} {ended}: {batches}, {_flow(figures)}{lag}"


def _flow(figures: "Progress | Figures") -> str:
    return f"{count(figures.rows, 'row')} in, {figures.written:,} out"
