"""`headrace log`: check and print the files of a partition, without a broker; dump is in log_dump."""

import sys
from pathlib import Path
from typing import Final

import click

from headrace.cli.support.lazy import Lazy, LazyGroup
from headrace.cli.support.output import bar, count, table
from headrace.cli.support.session import Session, json_option
from headrace.storage.checks.verify import SegmentReport
from headrace.storage.checks.verify import verify as verify_log
from headrace.storage.errors import StorageError

COMMANDS: Final = {
    "dump": Lazy("headrace.cli.log_dump", "dump", "Print what is in the files of a partition.")
}


@click.group(cls=LazyGroup, table=COMMANDS)
def log() -> None:
    """Check and print the files of a partition on disk."""


@log.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def verify(session: Session, directory: Path) -> None:
    """Check every batch and index entry:  headrace log verify /var/lib/headrace/orders-0

    Changes nothing. Stop the broker first: it may be writing to the end of the newest segment. Exit status 1
    if a segment is damaged.
    """
    total = sum(segment.stat().st_size for segment in directory.glob("*.log"))
    reports = []
    with bar("verifying", total) as advance:
        for report in verify_log(directory):
            reports.append(report)
            advance(report.size)
    columns = ("segment", "bytes", "batches", "offsets", "state")
    plain = [report._asdict() | {"path": str(report.path)} for report in reports]
    session.show(plain, lambda: table(columns, map(_row, reports)))
    problems = [problem for report in reports for problem in report.problems]
    for problem in problems if not session.as_json else ():
        click.echo(f"  {problem}", err=True)
    if problems and session.as_json:
        raise StorageError(f"{directory}: {count(len(problems), 'problem')}")
    if problems:
        sys.exit(1)


def _row(report: SegmentReport) -> tuple[object, ...]:
    offsets = f"offsets {report.base_offset} to {report.next_offset - 1}" if report.batches else "empty"
    state = "DAMAGED" if report.problems else "sound"
    return report.path.name, f"{report.size:,}", f"{report.batches:,}", offsets, state
