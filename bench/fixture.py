"""How long a test waits for its broker: from the call to the first answer to Metadata, and until it is gone.

python bench/fixture.py [STARTS]
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from headrace.client.wire.brokers import Brokers
from headrace.testing import Broker, Cluster

STARTS: Final = 20
IMPORTS: Final = 5
IMPORT: Final = """
import time
began = time.perf_counter()
from headrace.testing import Broker
print(time.perf_counter() - began)
"""
KINDS: Final[dict[str, Callable[[], Broker | Cluster]]] = {
    "in this process": Broker,
    "as a process": lambda: Broker(process=True),
    "three in this process": Cluster,
    "three processes": lambda: Cluster(process=True),
}


def main() -> None:
    starts = int(sys.argv[1]) if len(sys.argv) > 1 else STARTS
    print(f"{'':24}{'median':>10}{'best':>10}{'worst':>10}")
    show("import, once in a run", [imported() for _ in range(IMPORTS)])
    for kind, make in KINDS.items():
        make_and_end(make)  # the first has things to load
        lives = [make_and_end(make) for _ in range(starts)]
        show(kind, [started for started, _ in lives])
        show("  until it is gone", [ended for _, ended in lives])


def imported() -> float:
    done = subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True)
    return float(done.stdout)


def make_and_end(make: Callable[[], Broker | Cluster]) -> tuple[float, float]:
    """Seconds until it has answered, and from then until it has ended."""
    began = time.perf_counter()
    with make() as served:
        with Brokers(served.bootstrap) as brokers:
            assert brokers.metadata().brokers
        answered = time.perf_counter()
    return answered - began, time.perf_counter() - answered


def show(name: str, seconds: Sequence[float]) -> None:
    figures = (statistics.median(seconds), min(seconds), max(seconds))
    print(f"{name:24}" + "".join(f"{1000 * figure:7.0f} ms" for figure in figures))


if __name__ == "__main__":
    main()
