"""Headrace beside Apache Kafka: the same load on both, taking turns, as a table of ratios.

    make compare                                   everything, about twenty minutes
    make compare ARGS=--quick                      a first impression, two to three minutes
    make compare ARGS="--only 'raw produce'"       lines whose name matches the pattern

Both brokers run side by side on loopback, one idle while the other is loaded; every line is warmed up,
then measured in rounds that alternate. Figures are medians; `rounds` is the range of the ratios of single
rounds. Machines are noisy and have different numbers of cores: read the ratios. CPU is the broker's
process alone, as the kernel counts it.
"""

import argparse
import re
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from compare import consumers, java_consumers, life, process, producers, raw, servers
from compare.servers import HEADRACE_UP, MakeServer, Server
from compare.table import HEADING, Figures, Line, Row, rows, summary


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _arguments()
    rounds = 3 if arguments.quick else 5
    with tempfile.TemporaryDirectory(prefix="compare-", dir=arguments.directory) as name:
        root = Path(name)
        make_ours = servers.headrace(root, arguments.headrace)
        make_kafka = servers.kafka(root)
        chosen = [line for line in _lines(arguments, make_ours, make_kafka) if _wanted(line, arguments)]
        process.warn_if_busy()
        print(HEADING, flush=True)
        with make_ours() as ours, make_kafka() as kafka:
            raw.warm_up(ours, 3)
            raw.warm_up(kafka, 18 if arguments.quick else 36)  # a JVM takes longer to get up to speed
            found = list(_compare(chosen, ours, kafka, rounds))
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
    parser.add_argument("--headrace", default=HEADRACE_UP, metavar="COMMAND", help="default: %(default)s")
    return parser.parse_args()


def _lines(arguments: argparse.Namespace, make_ours: MakeServer, make_kafka: MakeServer) -> Iterator[Line]:
    makers = {"headrace": make_ours, "kafka": make_kafka}
    yield from life.before_load(makers, quick=arguments.quick)
    yield from raw.lines(0.8 if arguments.quick else 2.0)
    yield from producers.lines(quick=arguments.quick)
    yield from consumers.lines(quick=arguments.quick)
    yield from java_consumers.lines(quick=arguments.quick)
    yield from life.after_load()


def _wanted(line: Line, arguments: argparse.Namespace) -> bool:
    return (line.quick or not arguments.quick) and bool(re.search(arguments.only, line.name))


def _compare(chosen: Sequence[Line], ours: Server, kafka: Server, rounds: int) -> Iterator[Row]:
    for line in chosen:
        for row in rows(line, *_measure(line, ours, kafka, line.rounds or rounds)):
            print(row, flush=True)
            yield row


def _measure(line: Line, ours: Server, kafka: Server, rounds: int) -> tuple[list[Figures], list[Figures]]:
    """All rounds of a line: the two brokers take turns, and take turns at being first."""
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
