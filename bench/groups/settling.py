"""A hundred members who join one group at the same moment: how long until each has its partitions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import uvloop

from compare.servers import Server
from compare.table import Figures
from groups.coordinator import find
from groups.crowd import CLASSIC, CONSUMER, Kind, crowd
from groups.membership import Topic
from groups.table import Case

MEMBERS: Final = 100
PARTITIONS: Final = 200
DELAY: Final = "group.initial.rebalance.delay.ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    kind: Kind

    def run(self, server: Server) -> Figures:
        find(server.address)
        topic = Topic.made(server, "settled", PARTITIONS)
        return uvloop.run(self._run(server, topic))

    async def _run(self, server: Server, topic: Topic) -> Figures:
        async with crowd(self.kind, server, topic, groups=1, size=MEMBERS) as members:
            cpu = server.cpu_seconds()
            seconds = await members.settle()
            return {
                "s until settled": seconds,
                "generations": members.groups[0].members[0].generation,
                "CPU s": server.cpu_seconds() - cpu,
                "members missing": members.missing(),
            }


def cases() -> Iterator[Case]:
    name = f"{MEMBERS} join one group"
    yield Case(name=f"{name}, classic, as shipped", run=Settling(kind=CLASSIC).run)
    yield Case(
        name=f"{name}, classic, initial delay 3 s", run=Settling(kind=CLASSIC).run, settings={DELAY: "3000"}
    )
    yield Case(name=f"{name}, consumer", run=Settling(kind=CONSUMER).run)
