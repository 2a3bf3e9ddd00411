"""How far something is that takes its time."""

import sys
import time
from collections.abc import Iterator

import click

from headrace.cli.session import Session
from headrace.client.errors import ClientError


def follow(session: Session, lefts: Iterator[int], total: int, timeout_s: float | None) -> None:
    """Say how many of `total` partitions have arrived whenever that changes, until all have.

    On a terminal the line is written over and over. ClientError when the time is up.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    said = None
    try:
        for left in lefts:
            if left != said and not session.as_json:
                _say(f"{total - left} of {total} partitions have arrived", last=left == 0)
                said = left
            if left and deadline is not None and time.monotonic() > deadline:
                raise ClientError(
                    f"{left} of {total} partitions are still on their way after {timeout_s:g} s: they go on"
                )
    except KeyboardInterrupt:
        click.echo("the partitions go on without you; `headrace cluster status` shows them", err=True)
        raise


def _say(line: str, *, last: bool) -> None:
    if sys.stdout.isatty():
        click.echo(f"\r{line}", nl=last)
        sys.stdout.flush()
    else:
        click.echo(line)
