"""ZooKeeper sessions without ZooKeeper: a tree of znodes in memory that answers at once."""

from collections.abc import Callable, Sequence
from typing import cast

from headrace.coordination.session import (
    ANY_VERSION,
    Create,
    Delete,
    NotConnected,
    Operation,
    SessionState,
    Set,
    Watcher,
    Znode,
    ZooKeeperSession,
)
from headrace.coordination.znodes import PERSISTENT_PATHS
from simulation.znodes import Tree, Watch


class FakeZooKeeper:
    """A tree with the persistent paths of a cluster, and the watches of all sessions."""

    def __init__(self) -> None:
        self.tree = Tree(self._fired)
        self._watchers: list[Watcher] = []
        self._sessions = 100
        self._created = -1
        for path in PERSISTENT_PATHS:
            self.tree.ensure(path)

    def new_session_id(self) -> int:
        self._sessions += 1
        return self._sessions

    def next_number(self) -> str:
        """The sequence number of a znode. There is one sequence for all directories."""
        self._created += 1
        return f"{self._created:010}"

    def watch(self, session_id: int, watcher: Watcher | None) -> Watch | None:
        if watcher is None:
            return None
        self._watchers.append(watcher)
        return session_id, len(self._watchers) - 1

    def _fired(self, watch: Watch) -> None:
        self._watchers[watch[1]]()


class FakeSession:
    """One session; `failure` is raised by every call while it is set."""

    timeout_s = 3600.0

    def __init__(self, zookeeper: FakeZooKeeper) -> None:
        self.session_id = zookeeper.new_session_id()
        self.failure: Exception | None = None
        self.notifies_nobody = False  # sequential znodes cannot be created
        self.is_closed = False
        self._zookeeper = zookeeper
        self._callbacks: list[Callable[[SessionState], None]] = []

    @property
    def real(self) -> ZooKeeperSession:
        """This session, for components that take a ZooKeeperSession."""
        return cast("ZooKeeperSession", self)

    def tell(self, state: SessionState) -> None:
        for callback in self._callbacks:
            callback(state)

    def expire(self) -> None:
        """Delete the session's ephemeral znodes, and go on with a new session id."""
        self._tree.end_session(self.session_id)
        self.tell(SessionState.LOST)
        self.session_id = self._zookeeper.new_session_id()
        self.tell(SessionState.CONNECTED)

    # -- what a ZooKeeperSession does ------------------------------------------------------------

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self._callbacks.append(callback)

    async def get(self, path: str, watch: Watcher | None = None) -> Znode | None:
        return self._tree.get(path, self._zookeeper.watch(self.session_id, watch))

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [self._tree.get(path, None) for path in paths]

    async def exists(self, path: str, watch: Watcher | None = None) -> bool:
        return await self.get(path, watch) is not None

    async def children(self, path: str, watch: Watcher | None = None) -> list[str]:
        return self._tree.children(path, self._zookeeper.watch(self.session_id, watch))

    async def create(self, path: str, data: bytes, *, ephemeral: bool = False, sequence: bool = False) -> str:
        if sequence:
            if self.notifies_nobody:
                raise NotConnected("the connection is lost before the notification")
            path += self._zookeeper.next_number()
        await self.multi([Create(path, data, ephemeral)])
        return path

    async def ensure(self, path: str) -> None:
        self._tree.ensure(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        await self.multi([Set(path, data, version)])
        found = self._tree.get(path)
        assert found is not None
        return found.version

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        self._tree.change(operations, self.session_id)

    async def sync(self) -> None:
        """Do nothing: there is one server, which is up to date."""

    async def close(self) -> None:
        self._tree.end_session(self.session_id)
        self.is_closed = True

    @property
    def _tree(self) -> Tree:
        if self.failure is not None:
            raise self.failure
        return self._zookeeper.tree
