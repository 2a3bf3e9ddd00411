"""`headrace log`: a partition's files, without a broker."""

import sys
from pathlib import Path

import click

from headrace.storage.verify import verify as verify_log


@click.group()
def log() -> None:
    """Look at a partition's files on disk."""


@log.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def verify(directory: Path) -> None:
    """Check every batch and index entry:  headrace log verify /var/lib/headrace/orders-0

    Changes nothing. Stop the broker first, or expect the newest segment's end to be in motion.
    """
    problems = 0
    for report in verify_log(directory):
        state = "sound" if not report.problems else "DAMAGED"
        offsets = f"offsets {report.base_offset} to {report.next_offset - 1}" if report.batches else "empty"
        click.echo(
            f"{report.path.name}  {report.size:>12,} bytes  "
            f"{report.batches:>8,} batches  {offsets:<30}  {state}"
        )
        for problem in report.problems:
            click.echo(f"  {problem}", err=True)
        problems += len(report.problems)
    if problems:
        sys.exit(1)
