"""How far something is that takes its time: a bar on a terminal, nothing or a line elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import click

from headrace.cli.session import Session
from headrace.client.errors import ClientError

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


class Advance(Protocol):
    """Moves a bar on, and may change what stands before it."""

    def __call__(self, done: float, what: str | None = None, /) -> None: ...


@contextmanager
def bar(what: str, total: float, *, unit: str = "") -> Iterator[Advance]:
    """A bar while the block runs, if somebody looks; call what is yielded with how much was done since.

    It is drawn on stderr, and gone when the block ends: the result is all that stays.
    """
    if not sys.stderr.isatty():
        yield lambda _done, _what=None: None
        return
    from rich.console import Console  # noqa: PLC0415  slow to import, and for terminals only
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = [TextColumn("{task.description}"), BarColumn(), *_figures(unit), TimeRemainingColumn()]
    with Progress(*columns, console=Console(stderr=True), transient=True) as drawn:
        task = drawn.add_task(what, total=total)
        yield lambda done, what=None: drawn.update(task, advance=done, description=what)


def _figures(unit: str) -> "list[ProgressColumn]":
    from rich.progress import DownloadColumn, MofNCompleteColumn, TaskProgressColumn, TextColumn  # noqa: PLC0415

    if unit == "bytes":
        return [DownloadColumn(binary_units=True)]
    return [MofNCompleteColumn(), TextColumn(unit)] if unit else [TaskProgressColumn()]


def follow(session: Session, lefts: Iterator[int], total: int, timeout_s: float | None) -> None:
    """Say how many of `total` partitions have arrived whenever that changes, until all have.

    On a terminal that is a bar, and a line at the end. ClientError when the time is up.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    said = None
    try:
        with bar("moving", total, unit="partitions") as advance:
            for left in lefts:
                if left != said:
                    advance((total if said is None else said) - left)
                    said = left
                    if not sys.stderr.isatty():
                        _say(session, total - left, total)
                if left and deadline is not None and time.monotonic() > deadline:
                    raise _late(left, total, timeout_s)
        if sys.stderr.isatty():
            _say(session, total, total)
    except KeyboardInterrupt:
        click.echo("the partitions go on without you; `headrace cluster status` shows them", err=True)
        raise


def _late(left: int, total: int, timeout_s: float | None) -> ClientError:
    return ClientError(
        f"{left} of {total} partitions are still on their way after {timeout_s:g} s: they go on"
    )


def _say(session: Session, arrived: int, total: int) -> None:
    if not session.as_json:
        click.echo(f"{arrived} of {total} partitions have arrived")
        sys.stdout.flush()
