"""Many members at once: they connect, join until every group is settled, and then heartbeat."""

import asyncio
import gc
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from compare.servers import Server
from groups import classic, consumer
from groups.connection import Connection, connect
from groups.membership import Group, Member, Tally, Topic
from groups.progress import progress
from headrace.client.wire.connection import Address

SETTLE_TIMEOUT_S: Final = 180
STEP_S: Final = 0.5  # between two looks at how far it has come


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A protocol: how its members live, and how a broker is asked how many are still there."""

    name: str
    member: Callable[[Group, Connection, Tally], Member]
    living: Callable[[Address, Sequence[str]], int]


CLASSIC: Final = Kind(name="classic", member=classic.ClassicMember, living=classic.living)
CONSUMER: Final = Kind(name="consumer", member=consumer.ConsumerMember, living=consumer.living)


class Crowd:
    """All members of all groups, as tasks of one event loop."""

    def __init__(self, kind: Kind, address: Address, tasks: asyncio.TaskGroup) -> None:
        self._kind = kind
        self._address = address
        self._tasks = tasks
        self._running: list[asyncio.Task[None]] = []
        self._connections: list[Connection] = []
        self._unsettled = 0
        self._settled = asyncio.Event()
        self.groups: list[Group] = []
        self.tally = Tally()

    async def gather(self, topic: Topic, *, groups: int, size: int) -> None:
        """Make the groups and connect their members."""
        self._connections = await connect(self._address, groups * size)
        rest = iter(self._connections)
        for number in range(groups):
            group = Group(f"bench-{number}", topic, self._one_settled)
            group.members += [self._kind.member(group, next(rest), self.tally) for _ in range(size)]
            self.groups.append(group)
        self._unsettled = groups

    def _one_settled(self) -> None:
        self._unsettled -= 1
        if not self._unsettled:
            self._settled.set()

    async def settle(self) -> float:
        """Let everybody join at once; seconds until every group is settled."""
        start = time.perf_counter()
        for group in self.groups:
            self._running += [self._tasks.create_task(member.live()) for member in group.members]
        while not self._settled.is_set():
            seconds = time.perf_counter() - start
            if seconds > SETTLE_TIMEOUT_S:
                raise TimeoutError(f"{self._unsettled} groups have not settled after {SETTLE_TIMEOUT_S} s")
            progress(f"{len(self.groups) - self._unsettled} of {len(self.groups)} groups settled")
            with suppress(TimeoutError):
                await asyncio.wait_for(self._settled.wait(), STEP_S)
        return time.perf_counter() - start

    async def stay(self, seconds: float) -> None:
        """Let them heartbeat for so long; `tally` then has what happened in that time."""
        gc.collect()
        gc.freeze()  # collecting thousands of members would show as latency of the broker
        self.tally.clear()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            progress(f"{left:.0f} s of heartbeats left")
            await asyncio.sleep(min(left, STEP_S))

    def missing(self) -> int:
        """How many members the broker no longer has."""
        names = [group.name for group in self.groups]
        members = sum(len(group.members) for group in self.groups)
        return members - self._kind.living(self._address, names)

    def leave(self) -> None:
        for task in self._running:
            task.cancel()
        for connection in self._connections:
            connection.close()


@asynccontextmanager
async def crowd(kind: Kind, server: Server, topic: Topic, *, groups: int, size: int) -> AsyncIterator[Crowd]:
    async with asyncio.TaskGroup() as tasks:
        members = Crowd(kind, server.address, tasks)
        await members.gather(topic, groups=groups, size=size)
        try:
            yield members
        finally:
            members.leave()
