"""How a pipeline that runs looks: a picture that moves on a terminal, a line for every batch elsewhere."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline_files import Opened
from headrace.cli.pipeline_tables import draw_queries, in_one_line, in_short
from headrace.cli.session import Session
from headrace.pipeline.summing import Figures

if TYPE_CHECKING:
    from rich.console import RenderableType

    from headrace.pipeline.progress import Observer, Progress

_PER_SECOND: Final = 4


@contextmanager
def watching(session: Session, opened: Opened, master: str) -> "Iterator[Observer]":
    """Whoever is to be told of progress; at the end of the block there is a last line per query."""
    figures = _Watched()
    names = [opened.pipeline.query_name(each) for each in opened.pipeline.sinks]
    head = f"pipeline {opened.pipeline.name} on {opened.bootstrap}, Spark {master}"
    if session.as_json:
        yield _json
        return
    try:
        if not sys.stdout.isatty():
            click.echo(f"{head}: starting")
            yield figures.tell_lines
        else:
            with _live(figures, head, names):
                yield figures
    finally:
        for each in figures.all():
            click.echo(in_short(each))


class _Watched:
    """The figures of every query; told by Spark's threads, looked at by ours."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._figures: dict[str, Figures] = {}

    def __call__(self, progress: "Progress") -> None:
        with self._lock:
            self._figures.setdefault(progress.query, Figures(progress.query)).take(progress)

    def tell_lines(self, progress: "Progress") -> None:
        self(progress)
        if progress.event in {"started", "failed"} or progress.rows or progress.written:
            click.echo(in_one_line(progress))
            sys.stdout.flush()

    def all(self) -> list[Figures]:
        with self._lock:
            return [self._figures[name] for name in sorted(self._figures)]


def _json(progress: "Progress") -> None:
    click.echo(progress.encode())
    sys.stdout.flush()


@contextmanager
def _live(figures: _Watched, head: str, names: list[str]) -> Iterator[None]:
    from rich.live import Live  # noqa: PLC0415  slow to import

    began = time.monotonic()

    def draw() -> "RenderableType":
        return draw_queries(head, figures.all(), names, time.monotonic() - began)

    with Live(get_renderable=draw, refresh_per_second=_PER_SECOND, transient=True):
        yield
