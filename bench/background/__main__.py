"""What a producer notices of the broker's own work: compaction, reads from the disk, and retention.

    make background                                5 GB, about ten minutes
    make background ARGS="--gigabytes 0.5"         less data
    make background ARGS="--only compaction"       work whose name matches the pattern

One broker runs on the first core, and the clients on the last one, as with `make attacks`, whose client is
measured here: it sends one small request at a time. It runs while the broker is quiet, before and after each
work, and during the work. Expected: the 99th percentile of Produce is at most twice the quiet one. On a
machine with other load, read the rows with clock `cpu`: the CPU time that the broker used from the request to
the response, which includes its threads, but not processes that it has started.
"""

import argparse
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final

from attacks.figures import HEADING, Latencies, Row, added, rows
from attacks.launch import under_attack
from attacks.target import Attacked, attacked
from attacks.victim import Victim, run_first, victim
from background.cold_reader import read_all
from background.topics import Filled
from compare import process
from compare.wire import MIB, topic_id

EXPECTED: Final = 2.0
GIVE_UP_S: Final = 900.0
SETTLE_S: Final = 1.0
RETENTION_MB: Final = 1024
SETTINGS: Final = {
    "log.retention.bytes": "-1",
    "log.retention.check.interval.ms": "1000",
    "log.cleaner.backoff.ms": "1000",
}


class Run:
    """A broker, the client that is measured, and where the broker keeps its data."""

    def __init__(
        self, broker: Attacked, client: Victim, data: Path, size: int, arguments: argparse.Namespace
    ) -> None:
        self.broker = broker
        self.client = client
        self.data = data
        self.size = size
        self.seconds: float = arguments.seconds
        self.rounds: int = arguments.rounds

    def filled(self, name: str, size: int, **settings: str) -> Filled:
        topic = Filled(
            self.broker.target.plain,
            self.data,
            name,
            {each.replace("_", "."): value for each, value in settings.items()},
        )
        began = time.perf_counter()
        topic.fill(size)
        print(
            f"  {name}: {size / 1e9:.1f} GB were written in {time.perf_counter() - began:.0f} s", flush=True
        )
        return topic

    def until(self, is_over: Callable[[], bool]) -> Latencies:
        """Measure until the work is over, and say how much of its core the broker used."""
        pid = self.broker.process.pid
        cpu, began = process.cpu_seconds(pid), time.perf_counter()
        found = [self.client.measure(1.0)]
        while not is_over():
            assert time.perf_counter() < began + GIVE_UP_S, "the work does not end"
            found.append(self.client.measure(1.0))
        elapsed = time.perf_counter() - began
        share = (process.cpu_seconds(pid) - cpu) / elapsed
        print(f"  it took {elapsed:.0f} s; the broker used {share:.0%} of its core", flush=True)
        return added(found)

    def quiet(self) -> Latencies:
        time.sleep(SETTLE_S)
        return self.client.measure(self.seconds)


def compaction(run: Run) -> Iterator[tuple[Latencies, Latencies]]:
    """All closed segments of a topic, in one pass."""
    topic = run.filled(
        "compacted", run.size, segment_bytes=str(run.size // 20), min_cleanable_dirty_ratio="0.01"
    )
    with _dropped_at_the_end(topic):
        before = run.quiet()
        topic.change(cleanup_policy="compact")
        during = run.until(lambda: topic.size < run.size / 2 and not topic.is_being_compacted)
        yield added([before, run.quiet()]), during


def cold_reads(run: Run) -> Iterator[tuple[Latencies, Latencies]]:
    """A consumer that reads a topic from the disk, again and again."""
    topic = run.filled("cold", min(run.size, 2_000_000_000), segment_bytes=str(256 * MIB))
    with _dropped_at_the_end(topic):
        for _ in range(run.rounds):
            quiet = run.quiet()
            topic.drop_from_page_cache()
            read = partial(read_all, topic=topic.id)
            with under_attack(read, run.broker.target, run.seconds + 2 * SETTLE_S) as report:
                time.sleep(SETTLE_S)
                during = run.client.measure(run.seconds)
            print(f"  {report.text}", flush=True)
            yield quiet, during


def retention(run: Run) -> Iterator[tuple[Latencies, Latencies]]:
    """A thousand segments of one log that expire at the same moment."""
    size = min(run.size, RETENTION_MB * MIB)
    topic = run.filled("expiring", size, segment_bytes=str(MIB))
    with _dropped_at_the_end(topic):
        before = run.quiet()
        print(f"  {topic.segments} segments", flush=True)
        topic.change(retention_bytes="1")
        during = run.until(lambda: topic.size < size / 2)
        yield added([before, run.quiet()]), during


WORK: Final = {"compaction": compaction, "cold reads": cold_reads, "retention": retention}


@contextmanager
def _dropped_at_the_end(topic: Filled) -> Iterator[None]:
    """Free the disk: the next work has its own topic."""
    try:
        yield
    finally:
        topic.change(cleanup_policy="delete", retention_bytes="1")


def main() -> None:
    signal.signal(signal.SIGTERM, _terminated)
    arguments = _arguments()
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    settings = SETTINGS | dict(each.split("=", 1) for each in arguments.set)
    with (
        tempfile.TemporaryDirectory(prefix="background-", dir=arguments.directory) as name,
        attacked(Path(name), cores[0], settings) as broker,
        victim(broker.target.plain, topic_id(broker.target.plain, "victims"), broker.process.pid) as client,
    ):
        first = "first" if run_first() else "without priority (no permission for SCHED_FIFO)"
        print(
            f"the client runs {first}; load average {os.getloadavg()[0]:.1f}", HEADING, sep="\n", flush=True
        )
        client.measure(arguments.seconds)  # warm-up
        run = Run(broker, client, Path(name) / "data", int(arguments.gigabytes * 1e9), arguments)
        found = [row for work in WORK if re.search(arguments.only, work) for row in _measured(work, run)]
    held = [row.holds for row in found if row.kind.startswith("produce")]
    print(f"\n{sum(held)} of {len(held)} are within {EXPECTED:.0f} times the quiet p99")


def _measured(work: str, run: Run) -> Iterator[Row]:
    rounds = list(WORK[work](run))
    quiet, during = (added(each) for each in zip(*rounds, strict=True))
    for row in rows(work, quiet, during, expected=EXPECTED):
        print(row, flush=True)
        yield row


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make background", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=5.0, help="to compact; default: %(default)s")
    parser.add_argument("--only", default="", metavar="PATTERN", help="work whose name matches")
    parser.add_argument("--seconds", type=float, default=8.0, help="of a quiet round; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="of cold reads; default: %(default)s")
    parser.add_argument("--directory", type=Path, help="for the broker's data; temporary if not given")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="broker settings")
    return parser.parse_args()


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    sys.exit("terminated")  # as an exception, so that the broker is stopped


if __name__ == "__main__":
    main()
