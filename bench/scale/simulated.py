"""A simulated cluster of 300 brokers and 200,000 partitions: the work of its controller after failures.

`tests/capacity` runs the controller's own code without network, disk and ZooKeeper. Times are CPU time of
the controller's event loop, the work of the simulated ZooKeeper and the encoding of every message included;
*hold* is the longest time for which the loop served nobody else, without garbage collections, which traverse
the objects of the simulated ZooKeeper as well.
"""

import asyncio
import contextvars
import gc
import os
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from capacity.cluster import Broker, SimulatedCluster, Size, Traffic
from capacity.session import Counts
from compare import process
from headrace.cli.support.process import exempt_from_collections
from scale import metadata

FULL_SIZE: Final = Size(brokers=300, partitions=200_000, per_topic=20)
KIB, MIB = 1024, 1024 * 1024


class Collections:
    """A callback of the garbage collector that adds up its CPU time."""

    def __init__(self) -> None:
        self.total_s = self.longest_s = self._began = 0.0

    def __call__(self, phase: str, _info: Mapping[str, int]) -> None:
        if phase == "start":
            self._began = time.thread_time()
            return
        took = time.thread_time() - self._began
        self.total_s += took
        self.longest_s = max(self.longest_s, took)


class TimedLoop(asyncio.SelectorEventLoop):
    """An event loop that knows the CPU time of its longest callback."""

    def __init__(self) -> None:
        super().__init__()
        self.longest_s = 0.0
        self.collections = Collections()
        gc.callbacks.append(self.collections)

    def call_soon(  # type: ignore[override]  # the type of `args` depends on that of `callback`
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return super().call_soon(self._timed, callback, *args, context=context)

    def _timed(self, callback: Callable[..., Any], *args: Any) -> None:
        began, collected = time.thread_time(), self.collections.total_s
        callback(*args)
        took = time.thread_time() - began - (self.collections.total_s - collected)
        self.longest_s = max(self.longest_s, took)

    def begin(self) -> float:
        """Forget the longest callback; return the current CPU time."""
        self.longest_s = self.collections.longest_s = 0.0
        return time.thread_time()


@dataclass(slots=True)
class Event:
    """The figures of one failure."""

    name: str
    cpu_s: float
    hold_s: float
    collection_s: float  # the longest
    memory_bytes: int
    zookeeper: Counts  # of the controller's session
    traffic: Traffic

    def lines(self) -> Iterator[str]:
        zk, sent = self.zookeeper, self.traffic
        yield self.name
        yield (
            f"  CPU {self.cpu_s:.2f} s, hold {self.hold_s * 1000:.0f} ms, longest garbage collection "
            f"{self.collection_s * 1000:.0f} ms"
        )
        yield (
            f"  ZooKeeper: {zk.znodes_read:,} znodes ({zk.bytes_read / MIB:.1f} MiB) read with "
            f"{zk.read_requests:,} requests, {zk.watches_set:,} watches set"
        )
        yield (
            f"  ZooKeeper: {zk.operations:,} znodes ({zk.bytes_written / MIB:.1f} MiB) written in "
            f"{zk.transactions:,} transactions"
        )
        yield (
            f"  UpdateMetadata: {sent.updates:,} messages, {sent.update_bytes / MIB:,.1f} MiB, the largest "
            f"{sent.largest_update / KIB:.0f} KiB, {sent.states:,} partition states"
        )
        yield f"  ListOffsets: {sent.surveys:,} messages, {sent.survey_bytes / MIB:.1f} MiB"


class Measured:
    """A simulated cluster whose events are measured."""

    def __init__(self, size: Size) -> None:
        self.cluster = SimulatedCluster(size)
        self.events: list[Event] = []

    async def run(self) -> None:
        cluster, size = self.cluster, self.cluster.size
        first, second = cluster.broker(1), cluster.broker(2)
        async with self._event("the first controller begins", first):
            await cluster.join(first)
        one = size.brokers // 2 + 3
        await self._lose("one broker is lost", first, [one])
        await self._lose("a node of three brokers is lost", first, [4, 5, 6])
        cluster.resign(first)
        async with self._event("the controller fails, and another broker is elected", second):
            await cluster.join(second)
        rack = [each for each in size.in_rack("c") if each != one]
        await self._lose(f"a rack of {len(rack)} brokers is lost", second, rack)
        cluster.stop()

    async def _lose(self, name: str, controller: Broker, gone: Collection[int]) -> None:
        async with self._event(name, controller):
            await self.cluster.lose(controller, gone)

    @asynccontextmanager
    async def _event(self, name: str, broker: Broker) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TimedLoop)
        gc.collect()
        counts = broker.session.counts.copy()
        self.cluster.take_traffic()
        memory = process.resident_bytes(os.getpid())
        await asyncio.sleep(0)
        began = loop.begin()
        yield
        event = Event(
            name,
            time.thread_time() - began,
            loop.longest_s,
            loop.collections.longest_s,
            process.resident_bytes(os.getpid()) - memory,
            broker.session.counts.since(counts),
            self.cluster.take_traffic(),
        )
        self.events.append(event)


async def _measure(size: Size) -> list[Event]:
    measured = Measured(size)
    await asyncio.sleep(0)  # the set-up is no callback of the first event
    await measured.run()
    return measured.events


def main(size: Size = FULL_SIZE) -> None:
    print(f"{size.brokers} brokers in 3 racks, {size.partitions:,} partitions in {size.topics:,} topics")
    exempt_from_collections()
    with asyncio.Runner(loop_factory=TimedLoop) as runner:
        events = runner.run(_measure(size))
    for event in events:
        print("\n" + "\n".join(event.lines()))
    print("\nconstants for docs/scale.md")
    for name, value in chain(constants(size, events), metadata.constants()):
        print(f"  {name:<62} {value}")


def constants(size: Size, events: list[Event]) -> Iterator[tuple[str, str]]:
    """Iterate over the constants of the capacity model."""
    begins, lost, _, fails, rack = events
    brokers, partitions = size.brokers, size.partitions
    yield (
        "memory of the controller, per partition of the cluster",
        f"{begins.memory_bytes / partitions:,.0f} B",
    )
    yield "controller failover: CPU per partition", f"{fails.cpu_s / partitions * 1e6:.0f} us"
    yield (
        "controller failover: bytes per partition and broker",
        (f"{fails.traffic.update_bytes / fails.traffic.states:.0f} B"),
    )
    for name, event in (("one broker", lost), ("a rack", rack)):
        changed = event.zookeeper.operations
        yield f"{name} lost: partitions that change", f"{changed:,}"
        yield f"{name} lost: CPU per changed partition", f"{event.cpu_s / changed * 1e6:.0f} us"
        yield (
            f"{name} lost: bytes written to ZooKeeper per changed partition",
            (f"{event.zookeeper.bytes_written / changed:.0f} B"),
        )
        yield (
            f"{name} lost: bytes per changed partition and broker",
            (f"{event.traffic.update_bytes / event.traffic.states:.0f} B"),
        )
        yield f"{name} lost: messages per broker", f"{event.traffic.updates / brokers:.1f}"
