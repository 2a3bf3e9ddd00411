"""How long three brokers take to start, and what they cost while nobody uses them."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from compare.cluster_wire import knows_brokers
from compare.clusters import BROKERS, PROGRAM, environment
from compare.node import Node
from compare.servers import HOST
from compare.table import Expected, Figures, Line
from headrace.client.wire.connection import Address

READY: Final = re.compile(r"ready bootstrap=(\S+)")


class Costs(Protocol):
    def cpu_seconds(self) -> float: ...

    def resident_bytes(self) -> int: ...


class Started(Costs, Protocol):
    @property
    def seconds_to_metadata(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Fresh:
    """A way to start a cluster of which nothing runs yet."""

    name: str
    start: Callable[[], AbstractContextManager[Started]]


@dataclass(frozen=True, slots=True)
class _Up:
    """`headrace up --brokers 3`, started."""

    node: Node
    seconds_to_metadata: float

    def cpu_seconds(self) -> float:
        return self.node.cpu_seconds()

    def resident_bytes(self) -> int:
        return self.node.resident_bytes()


@contextmanager
def headrace_up(root: Path) -> Iterator[Started]:
    """One command, until each broker answers Metadata and knows the others."""
    directory = Path(tempfile.mkdtemp(prefix="up-", dir=root))
    options = ["--brokers", str(len(BROKERS)), "--data", str(directory / "data"), "--port", "0"]
    node = Node([PROGRAM, "up", *options], directory / "up.log", environment(root))
    started = time.perf_counter()
    node.start()
    try:
        node.wait_until_it_says("ready bootstrap=")
        for port in _ports(node):
            while not knows_brokers(Address(HOST, port), len(BROKERS)):
                time.sleep(0.005)
        yield _Up(node, time.perf_counter() - started)
    finally:
        node.stop()


def _ports(node: Node) -> list[int]:
    found = READY.search(node.log.read_text())
    assert found is not None, node.last_words()
    return [int(address.rpartition(":")[2]) for address in found[1].split(",")]


def lines(*, quick: bool) -> Iterator[Line[Fresh]]:
    settle_s, idle_s = (2.0, 4.0) if quick else (5.0, 10.0)

    def run(contender: Fresh) -> Figures:
        with contender.start() as fresh:
            time.sleep(settle_s)
            cpu = fresh.cpu_seconds()
            time.sleep(idle_s)
            return {
                "s to Metadata": fresh.seconds_to_metadata,
                "RSS MB": fresh.resident_bytes() / 1e6,
                "CPU %": (fresh.cpu_seconds() - cpu) / idle_s * 100,
            }

    yield Line(
        name="cluster start, then idle",
        run=run,
        rounds=1 if quick else 3,
        expected=[
            Expected(figure="s to Metadata", at_most=2.0, absolute=True),
            Expected(figure="RSS MB"),
            Expected(figure="CPU %"),
        ],
    )
