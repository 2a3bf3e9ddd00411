"""`headrace doctor`: check the machine, a directory and a cluster, and advise what to do."""

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.doctor import data as doctor_data
from headrace.cli.doctor import machine as doctor_machine
from headrace.cli.support.output import bar, count
from headrace.cli.support.session import REGISTRY_VARIABLE, Session, options
from headrace.client.doctor import cluster as cluster_rules
from headrace.client.doctor import data as data_rules
from headrace.client.doctor import groups as group_rules
from headrace.client.doctor import machine as machine_rules
from headrace.client.doctor import security as security_rules
from headrace.client.doctor.diagnosis import OK, PROBLEM, WARNING, Area, Diagnosis, Finding, diagnosis
from headrace.client.errors import ClientError

if TYPE_CHECKING:
    from headrace.client.doctor.cluster import ClusterFacts

PORTS: Final = {9092: "", 8080: "`headrace up` takes another one for HTTP"}
_COLOURS: Final = {OK: "green", WARNING: "yellow", PROBLEM: "red"}


@click.command()
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Check this directory, too: its disk, and the data of brokers in it.",
)
@click.option("--no-cluster", is_flag=True, help="Do not check a cluster.")
@click.option(
    "--watch",
    "apart_s",
    type=click.FloatRange(0, 600),
    default=2.0,
    metavar="SECONDS",
    help="How long to watch groups that lag.",
)
@options
def doctor(session: Session, data: Path | None, apart_s: float, *, no_cluster: bool) -> None:
    """Check the machine and a cluster, and advise what to do:  headrace doctor

    Or a directory, best while no broker runs there:  headrace doctor --data /var/lib/headrace

    Changes nothing. Each finding is ok, a warning (it may become a problem) or a problem. Exit status 1 if
    there is a problem.
    """
    found = diagnosis(_examine(session, data, apart_s, look_at_cluster=not no_cluster))
    session.show(found, "\n".join(_lines(found)))
    if found.problems:
        sys.exit(1)


def _examine(
    session: Session, data: Path | None, apart_s: float, *, look_at_cluster: bool
) -> Iterator[Finding]:
    area = Area(f"cluster at {session.bootstrap}")
    facts: ClusterFacts | None = None
    missing: ClientError | None = None
    if look_at_cluster:
        from headrace.client.doctor.reading import read_cluster  # noqa: PLC0415  not with --no-cluster

        registry = os.environ.get(REGISTRY_VARIABLE)
        try:
            facts = read_cluster(session.connection, [registry] if registry else [])
        except ClientError as error:
            missing = error
    ports = PORTS if facts is None else {}  # a cluster that runs has its ports
    yield from machine_rules.examine(doctor_machine.read_machine(ports, data))
    if data is not None:
        yield from _directories(data)
    if facts is not None:
        yield from cluster_rules.examine(area, facts)
        yield from security_rules.examine(area, facts.security, datetime.now(UTC))
        yield from _groups(session, area, apart_s)
    elif missing is not None and session.named is None:  # nobody expects a cluster at the default address
        yield area.ok("brokers", "No broker runs there; --bootstrap names another address.")
    elif missing is not None:
        sentence = f"{str(missing)[:1].upper()}{str(missing)[1:]}."
        yield area.problem("brokers", sentence, "Start the cluster, or check the address.")


def _groups(session: Session, area: Area, apart_s: float) -> Iterator[Finding]:
    from headrace.client.doctor.reading import read_groups  # noqa: PLC0415

    try:
        groups = read_groups(session.connection, apart_s)
    except ClientError as error:
        yield area.problem("groups", f"The groups cannot be read: {error}.", "See the findings above.")
    else:
        yield from group_rules.examine(area, groups)


def _directories(data: Path) -> Iterator[Finding]:
    if not data.exists():
        yield Area(str(data)).warning(
            "owner", "The directory does not exist.", "Check the path; `headrace up` would create it."
        )
        return
    directories = doctor_data.broker_directories(data)
    if not directories:
        yield Area(str(data)).ok("owner", "No broker has run here.")
        return
    total = sum(map(doctor_data.bytes_to_read, directories))
    with bar("reading logs", total) as advance:
        found = [doctor_data.read_directory(directory, advance) for directory in directories]
    for each in found:
        yield from data_rules.examine(each)


def _lines(found: Diagnosis) -> Iterator[str]:
    widest = max(len(finding.check) for finding in found.findings)
    for area, findings in groupby(found.findings, key=lambda each: each.area):
        yield click.style(area, bold=True)
        for finding in findings:
            mark = click.style(f"{finding.state:<8}", fg=_COLOURS[finding.state])
            yield f"  {mark} {finding.check:<{widest}}  {finding.says}"
            if finding.do:
                yield f"  {'':<8} {'':<{widest}}  → {finding.do}"
        yield ""
    if found.problems or found.warnings:
        yield f"{count(found.problems, 'problem')}, {count(found.warnings, 'warning')}"
    else:
        yield "no problems"
