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

from headrace.cli.pipeline.commands import OpenedPipeline, file_argument, open_pipeline, project, state_option
from headrace.cli.pipeline.state import COLUMNS, row, seconds, troubles, watermark
from headrace.cli.support.interrupts import STOPPING, ctrl_c_waits
from headrace.cli.support.output import UNKNOWN, Drawable, count, lines, size, table, together
from headrace.cli.support.session import Session, options, pairs
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.progress import Figures, in_all
from headrace.pipeline.restarts import Restart
from headrace.pipeline.state import DIRECTORY
from headrace.spark.launcher import LOCAL, is_submitted
from headrace.spark.submission import absolute, use_environment

if TYPE_CHECKING:
    from headrace.pipeline.progress import Observer, Progress

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
    if (spec := project(path)) is not None:
        from headrace.cli.pipeline.triggered import run_project  # noqa: PLC0415

        run_project(session, spec, root, master=master or LOCAL, settings=own)
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
            traceback.print_exception(error.__cause__ or error, file=sys.stderr)
            if java_frames := getattr(error.__cause__, "_stackTrace", None):
                click.echo(java_frames, err=True)
        raise


def _run(
    session: Session, opened: OpenedPipeline, master: str, settings: Mapping[str, str], *, once: bool
) -> None:
    from headrace.pipeline.embedded import prepare  # noqa: PLC0415

    pipeline, bootstrap, home = opened.pipeline, opened.bootstrap, opened.state.path
    with opened.state.running(), ExitStack() as stack:
        # Directories are checked and topics created before Spark starts, so that their errors come early.
        for topic in prepare(pipeline, bootstrap, opened.state):
            if not session.as_json:
                click.echo(f"created topic {topic.name}: {count(topic.partitions, 'partition')}")
        view = stack.enter_context(_view(session, opened, master))
        from headrace.pipeline.observers import Groups, History  # noqa: PLC0415
        from headrace.pipeline.runner import Runner  # noqa: PLC0415  imports Spark
        from headrace.spark import launcher  # noqa: PLC0415

        log = (home if isinstance(home, Path) else Path(DIRECTORY, home.name).absolute()) / "spark.log"
        with ctrl_c_waits():
            spark = launcher.session(pipeline.name, master=master, settings=settings, log=log)
            stack.callback(launcher.stop, spark)
        observers: list[Observer] = [
            stack.enter_context(closing(Groups(bootstrap, pipeline.client))),
            stack.enter_context(closing(History(bootstrap, pipeline.client))),
            view,
        ]
        runner = Runner(spark, pipeline, bootstrap, opened.state, observers)

        def stop(_number: int, _frame: object) -> None:
            runner.stop()
            if not session.as_json:
                click.echo("stopping after the current batches; Ctrl-C again stops at once")

        # Spark has installed a handler for Ctrl-C that would interrupt its batches.
        for number in STOPPING:
            stack.callback(signal.signal, number, signal.signal(number, stop))
        runner.run(to_the_end=once)


@contextmanager
def _view(session: Session, opened: OpenedPipeline, master: str) -> "Iterator[Observer]":
    """Yield an observer that shows progress; print a last line for each query at the end of the block."""
    if session.as_json:
        yield lambda progress: _print(progress.encode())
        return
    figures = QueryFigures()
    head = f"pipeline {opened.pipeline.name} on {opened.bootstrap}, Spark {master}"
    try:
        if not sys.stdout.isatty():
            click.echo(f"{head}: starting")
            yield figures.print_lines
        else:
            names = [opened.pipeline.query_name(sink) for sink in opened.pipeline.sinks]
            with _live(figures, head, names):
                yield figures
    finally:
        for query in figures.all():
            click.echo(in_short(query))


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
        is_event = progress.event in {"started", "stalled", "failed", "restarting"}
        if is_event or progress.rows or progress.written:
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
    shown = {name: Figures(name) for name in names} | {figures.query: figures for figures in queries}
    rows = [row(figures, name.partition(".")[2]) for name, figures in shown.items()]
    remarks = []
    for figures in shown.values():
        if worst := figures.worst(_WORST):
            partitions = ", ".join(f"{partition} {lag:,}" for partition, lag in worst)
            remarks.append(f"{figures.query} lags most in {partitions}")
    remarks += [line for figures in shown.values() for line in troubles(figures)]
    title = f"{head}, for {timedelta(seconds=int(since_s))}; Ctrl-C stops it"
    return together([title, table(COLUMNS, rows), *(["\n".join(remarks)] if remarks else [])])


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
