"""A broker's session with the simulated ZooKeeper: the same face as `headrace.coordination.session`."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from headrace.coordination.session import (
    ANY_VERSION,
    CALL_TIMEOUT_S,
    RECONNECTED_MS,
    Create,
    Delete,
    NotConnected,
    Operation,
    SessionState,
    Set,
    Watcher,
    Znode,
)
from simulation.network import End, Unreachable
from simulation.process import Process
from simulation.znodes import Tree
from simulation.zookeeper import HOST, Bye, Call, Done, Expired, Fired, Hello, Ping, Welcome


class SimSession:
    """Connects again whenever it has to, as kazoo does; tells its owner what became of the session."""

    def __init__(self, process: Process, timeout_s: float) -> None:
        self._process = process
        self.timeout_s = timeout_s
        self._on_state: Callable[[SessionState], None] = lambda _state: None
        self._end: End | None = None  # while connected
        self._heard = 0.0
        self._calls: dict[int, asyncio.Future[Any]] = {}
        self._watches: dict[int, Watcher] = {}
        self._numbers = 0
        self._closing = False
        self._welcomed = asyncio.Event()  # while connected
        self.session_id = 0

    async def start(self) -> None:
        """Return when there is a session."""
        self._process.run(self._connect())
        await self._welcomed.wait()
        self._ping()

    def on_state(self, callback: Callable[[SessionState], None]) -> None:
        self._on_state = callback

    async def reconnected(self, within_ms: int = RECONNECTED_MS) -> None:
        """Wait, for a while, if there is no connection just now."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(within_ms, RECONNECTED_MS) / 1000):
                await self._welcomed.wait()

    async def close(self) -> None:
        self._on_state = lambda _state: None
        self._closing = True
        if self._end is not None:
            self._end.send(Bye())
            await asyncio.sleep(0.01)

    # -- the connection ------------------------------------------------------------------------

    async def _connect(self) -> None:
        while not self._closing:
            try:
                end = await self._process.network.connect(self._process, HOST)
            except Unreachable:
                await asyncio.sleep(self._process.world.random.random())
            else:
                self._say_hello(end)
                return

    def _say_hello(self, end: End) -> None:
        end.receive = lambda message: self._receive(end, message)
        end.lost = lambda: self._lost(end)
        end.send(Hello(self.session_id, self.timeout_s))
        self._process.call(self._give_up, end, after_s=self.timeout_s)  # if nobody says hello back

    def _give_up(self, end: End) -> None:
        if end is not self._end and end.is_open:
            end.close()
            self._lost(end)

    def _receive(self, end: End, message: object) -> None:
        self._heard = self._process.world.now
        match message:
            case Welcome(session_id):
                self.session_id, self._end = session_id, end
                self._welcomed.set()
                self._on_state(SessionState.CONNECTED)
            case Expired():
                self.session_id = 0
                self._on_state(SessionState.LOST)
                end.send(Hello(0, self.timeout_s))
            case Done(number, result, error):
                future = self._calls.pop(number, None)
                if future is not None and not future.done():
                    if error is None:
                        future.set_result(result)
                    else:
                        future.set_exception(error)
            case Fired(number):
                watch = self._watches.pop(number, None)
                if watch is not None:
                    watch()

    def _ping(self) -> None:
        if self._closing:
            return
        if self._end is not None:
            if self._process.world.now - self._heard > self.timeout_s * 2 / 3:
                end = self._end
                end.close()
                self._lost(end)
            else:
                self._end.send(Ping())
        self._process.call(self._ping, after_s=self.timeout_s / 3)

    def _lost(self, end: End) -> None:
        """No connection: nobody knows what became of the calls, and no watch will fire any more."""
        if self._end is end:
            self._end = None
            self._welcomed.clear()
            self._on_state(SessionState.SUSPENDED)
        elif self._end is not None:
            return
        calls, self._calls = self._calls, {}
        for future in calls.values():
            if not future.done():
                future.set_exception(NotConnected("the connection has ended"))
        watches, self._watches = self._watches, {}
        for watch in watches.values():
            watch()
        self._process.run(self._connect())

    # -- calls ---------------------------------------------------------------------------------

    async def _call(self, work: Callable[[Tree, int], Any]) -> Any:
        if self._end is None:
            raise NotConnected("there is no connection")
        self._numbers += 1
        number = self._numbers
        future = self._calls[number] = self._process.loop.create_future()
        self._end.send(Call(number, work))
        timer = self._process.call(self._late, number, after_s=CALL_TIMEOUT_S)
        try:
            return await future
        finally:
            timer.cancel()

    def _late(self, number: int) -> None:
        future = self._calls.pop(number, None)
        if future is not None and not future.done():
            future.set_exception(NotConnected("no answer in time"))

    def _watch(self, watch: Watcher | None) -> int:
        if watch is None:
            return 0
        self._numbers += 1
        self._watches[self._numbers] = watch
        return self._numbers

    async def get(self, path: str, watch: Watcher | None = None) -> Znode | None:
        number = self._watch(watch)
        found: Znode | None = await self._call(
            lambda tree, session: tree.get(path, (session, number) if number else None)
        )
        return found

    async def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        found: list[Znode | None] = await self._call(
            lambda tree, _session: [tree.get(each, None) for each in paths]
        )
        return found

    async def exists(self, path: str, watch: Watcher | None = None) -> bool:
        return await self.get(path, watch) is not None

    async def children(self, path: str, watch: Watcher | None = None) -> list[str]:
        number = self._watch(watch)
        found: list[str] = await self._call(
            lambda tree, session: tree.children(path, (session, number) if number else None)
        )
        return found

    async def sync(self, _path: str = "/") -> None:
        """There is only one server here: whatever is asked from now on is answered with what is."""
        await self._call(lambda _tree, _session: None)

    async def create(self, path: str, data: bytes, *, ephemeral: bool = False) -> str:
        await self.multi([Create(path, data, ephemeral)])
        return path

    async def ensure(self, path: str) -> None:
        await self._call(lambda tree, _session: tree.ensure(path))

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        def work(tree: Tree, session: int) -> int:
            tree.change([Set(path, data, version)], session)
            found = tree.get(path)
            assert found is not None
            return found.version

        return int(await self._call(work))

    async def delete(self, path: str, version: int = ANY_VERSION) -> None:
        await self.multi([Delete(path, version)])

    async def multi(self, operations: Sequence[Operation]) -> None:
        await self._call(lambda tree, session: tree.change(operations, session))
