"""Headrace beside Apache Kafka: the same load on both, taking turns, as a table of ratios.

    make compare                                   everything, about forty minutes
    make compare ARGS=--quick                      a first impression, six to seven minutes
    make compare ARGS="--only 'raw produce'"       lines whose name matches the pattern
    make compare ARGS="--only tls"                 produce and fetch over TLS, handshakes
    make compare ARGS="--only authorization"       with ACLs and without
    make compare ARGS="--only cluster"             three brokers against three
    make compare ARGS="--only '^(?!cluster)'"      one against one

Both run side by side on loopback, one idle while the other is loaded; every line is warmed up,
then measured in rounds that alternate. Figures are medians; `rounds` is the range of the ratios of single
rounds. Machines are noisy and have different numbers of cores: read the ratios. CPU is that of the
brokers' processes alone, as the kernel counts it.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Generic, Protocol, TypeVar

from compare import (
    authorization,
    cluster_life,
    cluster_load,
    clusters,
    consumers,
    failover,
    handshakes,
    java_consumers,
    life,
    process,
    producers,
    raw,
    secured,
    servers,
    tls,
    transactions,
)
from compare.authorization import Pair
from compare.cluster import Cluster
from compare.cluster_life import Fresh
from compare.servers import HEADRACE_UP, MakeServer, Server
from compare.table import HEADING, Figures, Line, Row, rows, summary


class Named(Protocol):
    @property
    def name(self) -> str: ...


On = TypeVar("On", bound=Named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match(Generic[On]):
    """Two contenders that run for as long as their lines do, and what gets each of them up to speed."""

    ours: Callable[[], AbstractContextManager[On]]
    kafka: Callable[[], AbstractContextManager[On]]
    lines: Sequence[Line[On]]
    warm_up: Callable[[On, float], None] = lambda _contender, _seconds: None


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _arguments()
    found: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="compare-", dir=arguments.directory) as name:
        process.warn_if_busy()
        print(HEADING, flush=True)
        found += _play(_one_broker(Path(name), arguments), arguments)
        found += _play(_one_secured_broker(Path(name), arguments), arguments)
        found += _play(_authorizers(Path(name), arguments), arguments)
        found += _play(_three_brokers_start(Path(name), arguments), arguments)
        found += _play(_three_brokers(Path(name), arguments), arguments)
        print(f"\n{summary(found)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer lines, shorter rounds")
    parser.add_argument("--only", default="", metavar="PATTERN", help="lines whose name matches")
    parser.add_argument(
        "--directory", type=Path, help="where both keep their data; a temporary one if not given"
    )
    parser.add_argument(
        "--headrace", default=HEADRACE_UP, metavar="COMMAND", help="one broker; default: %(default)s"
    )
    return parser.parse_args()


def _one_broker(root: Path, arguments: argparse.Namespace) -> Match[Server]:
    quick = arguments.quick
    make_ours, make_kafka = servers.headrace(root, arguments.headrace), servers.kafka(root)
    makers: dict[str, MakeServer] = {"headrace": make_ours, "kafka": make_kafka}
    lines = [
        *life.before_load(makers, quick=quick),
        *raw.lines(0.8 if quick else 2.0),
        *producers.lines(quick=quick),
        *consumers.lines(quick=quick),
        *java_consumers.lines(quick=quick),
        *transactions.lines(quick=quick),
        *life.after_load(),
    ]
    return Match(ours=make_ours, kafka=make_kafka, lines=lines, warm_up=raw.warm_up)


def _one_secured_broker(root: Path, arguments: argparse.Namespace) -> Match[Server]:
    seconds = 0.8 if arguments.quick else 2.0
    certificates = secured.Certificates.made_in(root / "certificates")
    return Match(
        ours=secured.headrace(root, certificates),
        kafka=secured.kafka(root, certificates),
        lines=[*tls.lines(seconds), *handshakes.lines(2 * seconds)],
        warm_up=tls.warm_up,
    )


def _authorizers(root: Path, arguments: argparse.Namespace) -> Match[Pair]:
    """Two brokers of each kind, with and without an authorizer."""
    up, guarded = arguments.headrace, authorization.SETTINGS
    ours = partial(
        authorization.pair, "headrace", servers.headrace(root, up), servers.headrace(root, up, guarded)
    )
    kafka = partial(authorization.pair, "kafka", servers.kafka(root), servers.kafka(root, guarded))
    lines = [*authorization.lines(1.0 if arguments.quick else 3.0)]
    return Match(ours=ours, kafka=kafka, lines=lines, warm_up=authorization.prepare)


def _three_brokers_start(root: Path, arguments: argparse.Namespace) -> Match[Fresh]:
    """Before the clusters that carry the load: six brokers more would be in the way."""
    ours = Fresh("headrace", partial(cluster_life.headrace_up, root))
    kafka = Fresh("kafka", clusters.kafka(root))
    lines = [*cluster_life.lines(quick=arguments.quick)]
    return Match(ours=lambda: nullcontext(ours), kafka=lambda: nullcontext(kafka), lines=lines)


def _three_brokers(root: Path, arguments: argparse.Namespace) -> Match[Cluster]:
    lines = [*cluster_load.lines(quick=arguments.quick), *failover.lines(quick=arguments.quick)]
    return Match(
        ours=clusters.headrace(root), kafka=clusters.kafka(root), lines=lines, warm_up=cluster_load.warm_up
    )


def _play(match: Match[On], arguments: argparse.Namespace) -> Iterator[Row]:
    """The lines that are wanted, one after the other; nothing is started if there are none."""
    chosen = [line for line in match.lines if _wanted(line, arguments)]
    if not chosen:
        return
    rounds = 3 if arguments.quick else 5
    with match.ours() as ours, match.kafka() as kafka:
        match.warm_up(ours, 3)
        match.warm_up(kafka, 18 if arguments.quick else 36)  # a JVM takes longer to get up to speed
        for line in chosen:
            for row in rows(line, *_measure(line, ours, kafka, line.rounds or rounds)):
                print(row, flush=True)
                yield row


def _wanted(line: Line[On], arguments: argparse.Namespace) -> bool:
    return (line.quick or not arguments.quick) and bool(re.search(arguments.only, line.name))


def _measure(line: Line[On], ours: On, kafka: On, rounds: int) -> tuple[list[Figures], list[Figures]]:
    """All rounds of a line: the two contenders take turns, and take turns at being first."""
    figures: dict[str, list[Figures]] = {ours.name: [], kafka.name: []}
    pair = [ours, kafka]
    for server in pair:
        line.prepare(server)
        if line.warm_up:
            line.run(server)
    for _ in range(rounds):
        for server in pair:
            time.sleep(0.1)  # what the last round left behind in sockets and queues
            figures[server.name].append(line.run(server))
        pair.reverse()
    for server in pair:
        line.finish(server)
    return figures[ours.name], figures[kafka.name]


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("terminated")  # as an exception, so that both brokers are stopped


if __name__ == "__main__":
    main()
