"""Consumer groups in figures: many members, many joining at once, offsets, a first record, a restart.

    make groups                                     Headrace alone
    make groups ARGS=--kafka                        and the same load on Apache Kafka, as ratios
    make groups ARGS="--quick --only heartbeat"     shorter, and only loads whose name matches

Each load gets a broker that was started for it, Headrace's first and then Kafka's. CPU is the broker's
process alone, as the kernel counts it; the load itself is one process with raw requests, so two cores
suffice. As shipped, a new group waits 100 ms for more members with `headrace up`, and not at all with
Kafka's own server.properties.
"""

import argparse
import re
import resource
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from compare import process, servers
from compare.servers import HEADRACE_UP, MakeServer
from compare.table import Figures
from groups import first_record, heartbeats, offsets, recovery, settling
from groups.progress import progress
from groups.table import Case, table

KAFKA_AS_SHIPPED = {"offsets.topic.num.partitions": "50"}


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _arguments()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))  # thousands of members, a connection each
    process.warn_if_busy()
    with tempfile.TemporaryDirectory(prefix="groups-", dir=arguments.directory) as root:
        for case in _cases(quick=arguments.quick):
            if re.search(arguments.only, case.name):
                _compare(case, Path(root), arguments)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make groups", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="shorter")
    parser.add_argument("--kafka", action="store_true", help="beside Apache Kafka")
    parser.add_argument("--only", default="", metavar="PATTERN", help="loads whose name matches")
    parser.add_argument("--directory", type=Path, help="where data are kept; a temporary one if not given")
    parser.add_argument("--headrace", default=HEADRACE_UP, metavar="COMMAND", help="default: %(default)s")
    return parser.parse_args()


def _cases(*, quick: bool) -> Iterator[Case]:
    yield from heartbeats.cases(quick=quick)
    yield from settling.cases()
    yield from offsets.cases(quick=quick)
    yield from first_record.cases(quick=quick)
    yield from recovery.cases(quick=quick)


def _compare(case: Case, root: Path, arguments: argparse.Namespace) -> None:
    ours = _figures(case, servers.headrace(root, arguments.headrace, case.settings))
    kafkas: Figures = {}
    if arguments.kafka:
        kafkas = _figures(case, servers.kafka(root, KAFKA_AS_SHIPPED | dict(case.settings)))
    progress()
    print(f"{table(case, ours, kafkas)}\n", flush=True)


def _figures(case: Case, make: MakeServer) -> Figures:
    """What the load showed; nothing, and the reason on the standard error, if the broker failed."""
    server = make()
    progress(f"{case.name}: {server.name}")
    try:
        with server:
            return case.run(server)
    except Exception as error:  # noqa: BLE001  one broker's failure is no reason not to measure the rest
        progress()
        print(f"{case.name}: {server.name} failed: {error!r}", file=sys.stderr, flush=True)
        return {}


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("terminated")  # as an exception, so that the broker is stopped


if __name__ == "__main__":
    main()
