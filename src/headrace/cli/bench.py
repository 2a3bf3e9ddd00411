"""`headrace bench`: how fast it is here."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn, get_args

import click
from click.core import ParameterSource

from headrace.cli.bench_cluster import new_cluster
from headrace.cli.bench_run import Bench, Plan
from headrace.cli.bench_tables import draw
from headrace.cli.session import Session, options
from headrace.cli.texts import count
from headrace.client.cluster.cluster import Cluster
from headrace.client.errors import ClientError
from headrace.client.load.figures import COMPRESSIONS, Phase

PHASES: Final = get_args(Phase)
MOST_REPLICAS: Final = 3


@click.command()
@click.option(
    "--record-size", type=click.IntRange(16, 1_000_000), default=1000, show_default=True, help="Bytes."
)
@click.option("--partitions", type=click.IntRange(1, 1000), default=6, show_default=True, help="Of a topic.")
@click.option("--replicas", type=click.IntRange(1), help="Else 3, or as many as there are brokers.")
@click.option(
    "--acks",
    type=click.Choice(["0", "1", "all"]),
    default="all",
    show_default=True,
    help="Who has to have a record before it counts: nobody, its leader, all in sync.",
)
@click.option(
    "--compression",
    "compressions",
    type=click.Choice(COMPRESSIONS),
    multiple=True,
    help="Repeat to compare; else none.",
)
@click.option(
    "--seconds", type=click.FloatRange(0.1, 3600), default=5.0, show_default=True, help="Of each phase."
)
@click.option("--clients", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes.")
@click.option(
    "--rate",
    type=click.IntRange(1, 100_000),
    default=500,
    show_default=True,
    help="Records a second while latency is measured.",
)
@click.option(
    "--only", "phases", type=click.Choice(PHASES), multiple=True, help="Not the others; repeat for more."
)
@click.option(
    "--brokers", type=click.IntRange(1, 9), default=1, show_default=True, help="Of a cluster of its own."
)
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="On which disk a cluster of its own is; else where temporary files go.",
)
@options
@click.pass_obj
def bench(
    session: Session,
    /,
    *,
    compressions: Sequence[str],
    phases: Sequence[Phase],
    replicas: int | None,
    brokers: int,
    data: Path | None,
    **load: float | str,
) -> None:
    """See how fast it is on this machine:  headrace bench

    Starts a cluster in a temporary directory, writes as fast as it can, reads that back, and measures how
    long single records take; then everything is gone again. With --bootstrap it is done on a cluster that
    runs, in topics of its own, which are deleted at the end.

    \b
      headrace bench --brokers 3 --record-size 100
      headrace bench --compression none --compression zstd --only produce
      headrace bench --bootstrap one.example.com:9092 --clients 4 --json

    The busiest thread of clients and brokers tells which of them is the limit.
    """  # noqa: D301  \b is how click is told to leave lines as they are
    signal.signal(signal.SIGTERM, _interrupt)
    with _cluster(session, brokers, data) as bootstrap:
        with Cluster(bootstrap) as cluster:
            there = len(cluster.brokers())
        if replicas is not None and replicas > there:
            raise ClientError(
                f"--replicas {replicas} on {count(there, 'broker')}: there cannot be more than one on each"
            )
        plan = Plan(
            replicas=replicas or min(MOST_REPLICAS, there),
            compressions=list(dict.fromkeys(compressions)) or ["none"],
            phases=list(phases) or PHASES,
            **load,  # type: ignore[arg-type]
        )
        found = Bench(bootstrap, plan).run()
    session.show(found, lambda: draw(found))


@contextmanager
def _cluster(session: Session, brokers: int, data: Path | None) -> Iterator[str]:
    """The one that was named, or a new one that is gone at the end."""
    if session.named is not None:
        _check_unsaid("brokers", "data")
        yield session.named
        return
    with new_cluster(brokers, data) as bootstrap:
        yield bootstrap


def _check_unsaid(*names: str) -> None:
    """UsageError if somebody says how the cluster of its own shall be, and there is none."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            raise click.UsageError(
                f"--{name} is of a cluster of its own, and --bootstrap or HEADRACE_BOOTSTRAP names another."
            )


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
