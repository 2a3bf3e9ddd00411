"""format("headrace") beside Spark's own connector: the same queries, taking turns, on the same brokers.

    make spark-compare                     10 million records of 100 bytes, about half an hour
    make spark-compare ARGS=--quick        1 million, a first impression
    make spark-compare ARGS=--kafka        on Apache Kafka's broker, too
    make spark-compare ARGS="--only topic" the latencies alone: topic to topic, and topic to Delta

One session on two cores has both. Every query runs once before it counts. Figures are millions of rows a
second, or milliseconds from the send of a record to its arrival, medians of rounds that alternate; machines
are noisy: read the ratios.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import SparkSession

from compare import process, servers
from headrace.spark.launcher import session
from spark.jars import connector_jars
from sparks.latency import MEASURED_S, RATES, ROUTES, Percentiles, Route
from sparks.loads import DEFAULTS, LOADS, OURS, Bench, Contender, Load, fill

HEADING: Final = f"{'load':<34} {'headrace':>10} {'kafka':>10} {'ratio':>7}  {'rounds':<12} expected"


def main() -> None:
    arguments = _arguments()
    records = 1_000_000 if arguments.quick else 10_000_000
    with tempfile.TemporaryDirectory(prefix="spark-compare-", dir=arguments.directory) as name:
        process.warn_if_busy()
        root = Path(name)
        with _spark(root) as spark:
            makers = {"Headrace": servers.headrace(root, servers.HEADRACE_UP)}
            if arguments.kafka:
                makers["Apache Kafka"] = servers.kafka(root)
            for broker, make in makers.items():
                with make() as server:
                    print(f"\non {broker}, {records:,} records of 100 bytes\n{HEADING}", flush=True)
                    bench = Bench(spark, server.bootstrap, records, root / broker.replace(" ", "-"))
                    loads = [load for load in LOADS if re.search(arguments.only, load.name)]
                    if loads:
                        fill(bench)
                    for load in loads:
                        _play(load, bench, rounds=2 if arguments.quick else 3)
                    for route in ROUTES:
                        if re.search(arguments.only, route.name):
                            _time(route, bench, rounds=2 if arguments.quick else 5)


def _play(load: Load, bench: Bench, rounds: int) -> None:
    """A round of each contender after the other, and the line that sums them up."""
    figures: dict[Contender, list[float]] = {each: [] for each in load.contenders}
    for number in range(rounds + 1):
        for contender in load.contenders:
            speed = bench.records / load.run(bench, contender) / 1e6
            if number:
                figures[contender].append(speed)
    ours, *others = figures.items()
    for contender, speeds in others:
        ratios = [one / other for one, other in zip(ours[1], speeds, strict=True)]
        ratio = median(ours[1]) / median(speeds)
        expected = load.expected.get(contender)
        said = "" if expected is None else f">= {expected:.1f}x {'holds' if ratio >= expected else 'SHORT'}"
        print(
            f"{load.name + ', ' + contender.name:<34} {median(ours[1]):>10.2f} {median(speeds):>10.2f} "
            f"{ratio:>6.2f}x  {min(ratios):.2f}-{max(ratios):<7.2f} {said}",
            flush=True,
        )


def _time(route: Route, bench: Bench, rounds: int) -> None:
    """Measure the latency of both contenders in turn, at every rate, and print a line for each percentile."""
    for rate in RATES:
        figures: dict[Contender, list[Percentiles]] = {OURS: [], DEFAULTS: []}
        for number in range(rounds):
            for contender in (OURS, DEFAULTS)[:: 1 if number % 2 else -1]:
                figures[contender].append(route.measure(bench, contender, rate, MEASURED_S))
        for index, name in enumerate(Percentiles._fields):
            ours, theirs = ([found[index] for found in each] for each in figures.values())
            ratios = [one / other for one, other in zip(ours, theirs, strict=True)]
            ratio = median(ours) / median(theirs)
            print(
                f"{f'{route.name}, {rate:,}/s, {name} ms':<34} {median(ours):>10.0f} {median(theirs):>10.0f} "
                f"{ratio:>6.2f}x  {min(ratios):.2f}-{max(ratios):<7.2f} "
                f"<= 1.0x {'holds' if ratio <= 1 else 'SHORT'}",
                flush=True,
            )


@contextmanager
def _spark(root: Path) -> Iterator[SparkSession]:
    spark = session(
        "spark-compare",
        master="local[2]",
        settings={
            "spark.jars": ",".join(map(str, connector_jars())),
            "spark.local.dir": str(root),
            "spark.driver.memory": "2g",
        },
    )
    try:
        yield spark
    finally:
        spark.stop()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make spark-compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, two rounds")
    parser.add_argument("--kafka", action="store_true", help="then the same on Apache Kafka's broker")
    parser.add_argument("--only", default="", metavar="PATTERN", help="loads whose name matches")
    parser.add_argument("--directory", type=Path, help="where data goes; a temporary one if not given")
    return parser.parse_args()


if __name__ == "__main__":
    main()
