"""`headrace log`: a partition's files, without a broker."""

import sys
from pathlib import Path

import click

from headrace.cli.lazy import LazyGroup
from headrace.cli.progress import bar
from headrace.cli.session import Session, as_json_option, table
from headrace.cli.texts import count
from headrace.storage.errors import StorageError
from headrace.storage.verify import SegmentReport
from headrace.storage.verify import verify as verify_log


@click.group(cls=LazyGroup)
def log() -> None:
    """Look at a partition's files on disk."""


@log.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@as_json_option
@click.pass_obj
def verify(session: Session, directory: Path) -> None:
    """Check every batch and index entry:  headrace log verify /var/lib/headrace/orders-0

    Changes nothing. Stop the broker first, or expect the newest segment's end to be in motion. Exit status 1
    if there is damage.
    """
    total = sum(each.stat().st_size for each in directory.glob("*.log"))
    reports = []
    with bar("verifying", total, unit="bytes") as advance:
        for report in verify_log(directory):
            reports.append(report)
            advance(report.size)
    session.show([_plain(each) for each in reports], lambda: table(_COLUMNS, map(_row, reports)))
    problems = [problem for report in reports for problem in report.problems]
    for problem in problems if not session.as_json else ():
        click.echo(f"  {problem}", err=True)
    if problems and session.as_json:
        raise StorageError(f"{directory}: {count(len(problems), 'problem')}")
    if problems:
        sys.exit(1)


_COLUMNS = ("segment", "bytes", "batches", "offsets", "state")


def _row(report: SegmentReport) -> tuple[object, ...]:
    offsets = f"offsets {report.base_offset} to {report.next_offset - 1}" if report.batches else "empty"
    state = "DAMAGED" if report.problems else "sound"
    return report.path.name, f"{report.size:,}", f"{report.batches:,}", offsets, state


def _plain(report: SegmentReport) -> dict[str, object]:
    return report._asdict() | {"path": str(report.path)}
