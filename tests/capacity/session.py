"""A ZooKeeper session without ZooKeeper, which counts what it is asked for.

The tree of znodes is the one of `tests/simulation`; every call takes one iteration of the event loop.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import cast

from headrace.coordination.session import (
    ANY_VERSION,
    Check,
    Create,
    Delete,
    NotConnected,
    Operation,
    Set,
    Watcher,
    Znode,
    ZooKeeperSession,
)
from headrace.coordination.znodes import PERSISTENT_PATHS
from simulation.znodes import Tree, Watch

READ_TOGETHER = 200  # znodes that `ZooKeeperSession.get_many` reads with one request


@dataclass(slots=True)
class Counts:
    """What a session has asked ZooKeeper for."""

    read_requests: int = 0
    znodes_read: int = 0
    bytes_read: int = 0
    watches_set: int = 0
    transactions: int = 0
    operations: int = 0  # of transactions, without the check of the controller epoch
    bytes_written: int = 0
    largest_transaction: int = 0  # bytes

    def since(self, earlier: "Counts") -> "Counts":
        """Return the difference, with the largest transaction of all."""
        differences = {
            each.name: getattr(self, each.name) - getattr(earlier, each.name) for each in fields(self)
        }
        return Counts(**differences | {"largest_transaction": self.largest_transaction})

    def copy(self) -> "Counts":
        return Counts(**{each.name: getattr(self, each.name) for each in fields(self)})


class CountedTree:
    """The znodes of a cluster, and the watches of all sessions."""

    def __init__(self) -> None:
        self.tree = Tree(self._fired)
        self.fired = 0
        self._watchers: dict[int, Watcher] = {}
        self._numbers = 0
        for path in PERSISTENT_PATHS:
            self.tree.ensure(path)

    @property
    def watches(self) -> int:
        return len(self._watchers)

    def watch(self, session_id: int, watcher: Watcher | None) -> Watch | None:
        if watcher is None:
            return None
        self._numbers += 1
        self._watchers[self._numbers] = watcher
        return session_id, self._numbers

    def _fired(self, watch: Watch) -> None:
        self.fired += 1
        self._watchers.pop(watch[1])()


class CountingSession:
    """One session: the methods of `ZooKeeperSession` that brokers use for the cluster's state."""

    timeout_s = 3600.0

    def __init__(self, zookeeper: CountedTree, session_id: int) -> None:
        self.session_id = session_id
        self.counts = Counts()
        self.refuses_writes = False  # as a session without a connection
        self._zookeeper = zookeeper

    @property
    def real(self) -> ZooKeeperSession:
        """This session, for components that take a ZooKeeperSession."""
        return cast("ZooKeeperSession", self)

    async def get(self, path: str, watch: Watcher | None = None) -> Znode | None:
        self.counts.read_requests += 1
        self.counts.watches_set += watch is not None
        await asyncio.sleep(0)
        return self._read(path, watch)

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        found: list[Znode | None] = []
        for first in range(0, len(paths), READ_TOGETHER):
            self.counts.read_requests += 1
            await asyncio.sleep(0)
            found += [self._read(path) for path in paths[first : first + READ_TOGETHER]]
        return found

    async def exists(self, path: str, watch: Watcher | None = None) -> bool:
        return await self.get(path, watch) is not None

    async def children(self, path: str, watch: Watcher | None = None) -> list[str]:
        self.counts.read_requests += 1
        self.counts.watches_set += watch is not None
        await asyncio.sleep(0)
        found = self._zookeeper.tree.children(path, self._zookeeper.watch(self.session_id, watch))
        self.counts.bytes_read += sum(len(name) + 4 for name in found)
        return found

    async def create(self, path: str, data: bytes) -> str:
        await self.multi([Create(path, data)])
        return path

    async def ensure(self, path: str) -> None:
        self._zookeeper.tree.ensure(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        await self.multi([Set(path, data, version)])
        found = self._zookeeper.tree.get(path)
        assert found is not None
        return found.version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        if self.refuses_writes:
            raise NotConnected("there is no connection")
        changes = [each for each in operations if not isinstance(each, Check)]
        size = sum(
            len(each.path) + len(each.data) if isinstance(each, Create | Set) else len(each.path)
            for each in operations
        )
        self.counts.transactions += 1
        self.counts.operations += len(changes)
        self.counts.bytes_written += size
        self.counts.largest_transaction = max(self.counts.largest_transaction, size)
        await asyncio.sleep(0)
        self._zookeeper.tree.change(operations, self.session_id)

    def _read(self, path: str, watch: Watcher | None = None) -> Znode | None:
        found = self._zookeeper.tree.get(path, self._zookeeper.watch(self.session_id, watch))
        self.counts.znodes_read += 1
        self.counts.bytes_read += 0 if found is None else len(found.data)
        return found
