"""Groups and members as the load sees them, whichever protocol the members speak."""

import asyncio
import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from compare.servers import Server
from compare.wire import topic_id
from groups.connection import Answer, Connection
from headrace.protocol.errors import ErrorCode

RETRY_S: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    name: str
    id: bytes
    partitions: int

    @classmethod
    def made(cls, server: Server, name: str, partitions: int) -> "Topic":
        server.create_topic(name, partitions=partitions)
        return cls(name=name, id=topic_id(server.address, name), partitions=partitions)


@dataclass(slots=True)
class Tally:
    """What the heartbeats of all members showed since the last `clear`."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[ErrorCode] = field(default_factory=Counter)

    def clear(self) -> None:
        self.seconds.clear()
        self.errors.clear()

    def add(self, answer: Answer) -> ErrorCode:
        self.seconds.append(answer.seconds)
        error = ErrorCode(answer.message.error_code)
        if error:
            self.errors[error] += 1
        return error


class Group:
    """A group and what its members own; settled once one generation has each partition in one fair share.

    Fair, because a broker may put off the assignment: until then one member has all, the others nothing.
    """

    def __init__(self, name: str, topic: Topic, on_settled: Callable[[], None]) -> None:
        self.name = name
        self.topic = topic
        self.members: list[Member] = []
        self.settled = False
        self._on_settled = on_settled

    def changed(self) -> None:
        """A member has another generation or other partitions than before."""
        if not self.settled and len({member.generation for member in self.members}) == 1 and self._shared():
            self.settled = True
            self._on_settled()

    def _shared(self) -> bool:
        shares = [len(member.owned) for member in self.members]
        owned = [partition for member in self.members for partition in member.owned]
        return sorted(owned) == list(range(self.topic.partitions)) and max(shares) - min(shares) <= 1


class Member(ABC):
    """One member with a connection of its own, which joins and heartbeats until it is cancelled."""

    def __init__(self, group: Group, connection: Connection, tally: Tally) -> None:
        self.group = group
        self.connection = connection
        self.tally = tally
        self.generation = 0  # or the member's epoch
        self.owned: frozenset[int] = frozenset()

    async def live(self) -> None:
        """Join, then heartbeat at the interval from a random moment on: real members do not march in step."""
        loop = asyncio.get_running_loop()
        while True:
            await self.join()
            self.group.changed()
            due = loop.time() + random.random() * self.interval_s
            stays = True
            while stays:
                await asyncio.sleep(due - loop.time())
                due += self.interval_s
                stays = await self.heartbeat()

    @property
    @abstractmethod
    def interval_s(self) -> float: ...

    @abstractmethod
    async def join(self) -> None:
        """Become a member, with `generation` and `owned` set."""

    @abstractmethod
    async def heartbeat(self) -> bool:
        """One heartbeat; False if the member has to join again."""
