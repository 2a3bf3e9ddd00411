"""A thousand groups of five members each, who heartbeat: what a broker with many groups is busy with."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import quantiles
from typing import Final

import uvloop

from compare.servers import Server
from compare.table import Figures
from groups.coordinator import find
from groups.crowd import CLASSIC, CONSUMER, Crowd, Kind, crowd
from groups.membership import Topic
from groups.table import Case

GROUPS: Final = 1000
SIZE: Final = 5
PARTITIONS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    kind: Kind
    warm_up_s: float
    seconds: float

    def run(self, server: Server) -> Figures:
        find(server.address)
        topic = Topic.made(server, "beaten", PARTITIONS)
        return uvloop.run(self._run(server, topic))

    async def _run(self, server: Server, topic: Topic) -> Figures:
        async with crowd(self.kind, server, topic, groups=GROUPS, size=SIZE) as members:
            cpu = server.cpu_seconds()
            settled_s = await members.settle()
            joining = {"s until all have joined": settled_s, "CPU s to join": server.cpu_seconds() - cpu}
            await members.stay(self.warm_up_s)
            cpu = server.cpu_seconds()
            await members.stay(self.seconds)
            return {**joining, **self._figures(members, server, server.cpu_seconds() - cpu)}

    def _figures(self, members: Crowd, server: Server, cpu: float) -> Figures:
        tally = members.tally
        percentiles = quantiles(tally.seconds, n=100)
        return {
            "heartbeats/s": len(tally.seconds) / self.seconds,
            "p50 ms": percentiles[49] * 1000,
            "p99 ms": percentiles[98] * 1000,
            "max ms": max(tally.seconds) * 1000,
            "errors": tally.errors.total(),
            "members that expired": members.missing(),
            "CPU %": cpu / self.seconds * 100,
            "CPU us/heartbeat": cpu / len(tally.seconds) * 1e6,
            "RSS MB": server.resident_bytes() / 1e6,
        }


def cases(*, quick: bool) -> Iterator[Case]:
    warm_up_s, seconds = (5, 15) if quick else (20, 60)
    for kind in (CLASSIC, CONSUMER):
        load = Heartbeats(kind=kind, warm_up_s=warm_up_s, seconds=seconds)
        yield Case(name=f"{GROUPS:,} groups of {SIZE} heartbeat, {kind.name}", run=load.run)
