"""Many partitions on Headrace, next to Apache Kafka: what they cost, and how long things take.

    make scale                                 1,000, 5,000 and 10,000 partitions, and failovers: half an hour
    make scale ARGS="--partitions 1000"        one size
    make scale ARGS="--partitions --cluster-partitions 3000"         failovers only
    make scale ARGS="--headrace-only"          without Kafka
    make scale ARGS="--simulated"              controller of 300 brokers and 200,000 partitions, without I/O

Both run one after the other, each alone: one broker with one record in every partition, then three brokers
of which one is killed. Times are of one run: on a noisy machine, repeat them, and read the ratios.
"""

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

from compare import clusters, process, servers
from scale import failover, load, simulated, zookeeper
from scale.partitions import measure

EXPECTED: Mapping[str, str] = {
    "create s": "<= 1.5x",
    "longest delay ms": "<= 20",
    "KiB/partition": "< 8",
    "idle CPU %": "flat",
    "restart s": "<= 0.25x",
    "controller failover s": "<= 1.0x",
}


def main() -> None:
    arguments = _arguments()
    process.warn_if_busy()
    if arguments.simulated:
        simulated.main()
        with tempfile.TemporaryDirectory(prefix="scale-", dir=arguments.directory) as name:
            for line in zookeeper.lines(Path(name)):
                print(line, flush=True)
        return
    print(f"{'partitions':>10}  {'figure':<22} {'headrace':>10} {'kafka':>10} {'ratio':>7}  expected")
    with tempfile.TemporaryDirectory(prefix="scale-", dir=arguments.directory) as name:
        root, is_alone = Path(name), arguments.headrace_only
        for partitions in arguments.partitions:
            ours = measure(servers.headrace(root)(), partitions)
            _show(partitions, ours, {} if is_alone else measure(servers.kafka(root)(), partitions))
        if arguments.load:
            _show(load.PARTITIONS, load.measure(clusters.headrace(root)), {})
        for partitions in arguments.cluster_partitions:
            ours = failover.measure(clusters.headrace(root), partitions)
            _show(partitions, ours, {} if is_alone else failover.measure(clusters.kafka(root), partitions))


def _show(partitions: int, ours: Mapping[str, float], kafkas: Mapping[str, float]) -> None:
    for figure, value in ours.items():
        kafka = kafkas.get(figure)
        beside = "" if kafka is None else f"{kafka:10.2f} {value / kafka if kafka else float('inf'):6.2f}x"
        line = f"{partitions:10,}  {figure:<22} {value:10.2f} {beside:>18}  {EXPECTED.get(figure, '')}"
        print(line.rstrip(), flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--partitions", type=int, nargs="*", default=[1000, 5000, 10_000])
    parser.add_argument(
        "--cluster-partitions", type=int, nargs="*", default=[3000], help="of three brokers, for failovers"
    )
    parser.add_argument("--headrace-only", action="store_true", help="measure no Kafka")
    parser.add_argument("--load", action="store_true", help="CPU time per megabyte of three brokers as well")
    parser.add_argument("--simulated", action="store_true", help="only the controller of a large cluster")
    parser.add_argument("--directory", type=Path, help="where both keep their data")
    return parser.parse_args()


if __name__ == "__main__":
    main()
