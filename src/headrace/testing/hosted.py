"""Brokers and their coordinator from start to end: where they run, and that nothing of them stays."""

import asyncio
import atexit
import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from headrace.background import CANNOT_STOP
from headrace.coordination.embedded.server import Coordinator
from headrace.ports import reserved
from headrace.testing.captured_log import CapturedLog
from headrace.testing.embedded import EmbeddedBroker
from headrace.testing.faults import Faults
from headrace.testing.loop_thread import LoopThread
from headrace.testing.nodes import Beside, Inside, Node
from headrace.testing.settings import Settings, as_text, broker_settings

HOST: Final = "127.0.0.1"

T = TypeVar("T")
_numbers = itertools.count(1)


class Hosted:
    """Brokers 1, 2, 3 and so on, from `start` to `stop`, or for a `with` block. Nothing of them stays."""

    def __init__(
        self,
        brokers: int,
        settings: Settings | None,
        *,
        process: bool,
        data: Path | str | None,
    ) -> None:
        self._count = brokers
        self._given = as_text(settings or {})
        self._process = process
        self._data = None if data is None else Path(data)
        self._name = f"headrace-testing-{next(_numbers)}-"
        self._loop = LoopThread(self._name, stop_at_exit=self.stop)
        self._log = CapturedLog(self._name)
        self._faults = Faults(self._embedded, self._call)
        self._nodes: dict[int, Node] = {}
        self._ports: dict[int, int] = {}
        self._stack = ExitStack()
        self._owner = 0  # the process that has started it, while it runs

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> Self:
        """Return it when clients can connect and everything to begin with is there."""
        assert not self._owner, "it runs already"
        self._owner = os.getpid()
        try:
            root = self._directory()
            self._start_loop()
            zookeeper = self._start_coordinator(root)
            self._make_nodes(root, zookeeper)
            self._loop.run(_all(node.start() for node in self._nodes.values()))
            self._begin()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Leave no thread, no file, no process; fine if there is none, or if it is another process's."""
        if self._owner == os.getpid():
            self._owner = 0
            self._log.is_kept = False  # what follows is nothing to complain of
            self._stack.close()

    def _begin(self) -> None:
        """What else is to be done before it is there."""

    def _directory(self) -> Path:
        """Where the data is: the directory that was given, which stays, or one that goes."""
        if self._data is not None:
            self._data.mkdir(parents=True, exist_ok=True)
            return self._data
        made = Path(tempfile.mkdtemp(prefix="headrace-testing-"))
        self._stack.callback(shutil.rmtree, made)
        if CANNOT_STOP:
            forgotten = partial(_remove, made, os.getpid())  # by a script that never stops its broker
            atexit.register(forgotten)
            self._stack.callback(atexit.unregister, forgotten)
        return made

    def _start_loop(self) -> None:
        self._log.is_kept = True
        self._log.open()
        self._stack.callback(self._log.close)
        self._loop = LoopThread(self._name, stop_at_exit=self.stop)
        self._loop.start()
        self._stack.callback(self._loop.stop)

    def _start_coordinator(self, root: Path) -> str:
        # Not synced: what the machine forgets when it goes down, no test will ask for.
        coordinator = Coordinator(root / "coordinator", HOST, port=0, sync=False)
        self._loop.run(coordinator.start())
        self._stack.callback(lambda: self._loop.run(coordinator.stop()))
        self._loop.call(coordinator.end_sessions)
        return coordinator.address

    def _make_nodes(self, root: Path, zookeeper: str) -> None:
        self._stack.callback(self._end_nodes)
        self._ports.clear()
        # A broker that is stopped finds its port again: nobody else's meanwhile.
        ports = self._stack.enter_context(reserved(HOST, 0, self._count))
        self._ports.update(enumerate(ports, start=1))
        for broker_id, port in self._ports.items():
            settings = broker_settings(self._count, self._given) | {
                "broker.id": str(broker_id),
                "log.dirs": str(root / f"broker-{broker_id}"),
                "listeners": f"PLAINTEXT://{HOST}:{port}",
                "zookeeper.connect": zookeeper,
            }
            self._nodes[broker_id] = (
                Beside(settings, root / f"broker-{broker_id}.log")
                if self._process
                else Inside(settings, self._faults)
            )

    def _end_nodes(self) -> None:
        """Data that nobody will see again needs no orderly end."""
        nodes, self._nodes = self._nodes, {}
        self._loop.run(_all(node.kill() if self._data is None else node.stop() for node in nodes.values()))

    # -- its parts -----------------------------------------------------------------------------

    def _call(self, function: Callable[..., T], *args: Any) -> T:
        return self._loop.call(function, *args)

    def _address(self, broker_id: int) -> str:
        return f"{HOST}:{self._ports[broker_id]}"

    def _restart(self, broker_id: int) -> None:
        node = self._node(broker_id)
        self._loop.run(node.stop())
        self._loop.run(node.start())

    def _node(self, broker_id: int) -> Node:
        if broker_id not in self._nodes:
            raise ValueError(f"there is no broker {broker_id}, only {', '.join(map(str, self._nodes))}")
        return self._nodes[broker_id]

    def _beside(self, broker_id: int) -> Beside:
        node = self._node(broker_id)
        if not isinstance(node, Beside):
            raise RuntimeError("only a process can be paused: use process=True")  # noqa: TRY004
        return node

    def _said_beside(self) -> dict[int, list[str]]:
        return {each.broker_id: each.warnings() for each in self._nodes.values() if isinstance(each, Beside)}

    def _embedded(self) -> Iterator[EmbeddedBroker]:
        for node in self._nodes.values():
            if isinstance(node, Inside) and node.broker is not None:
                yield node.broker


def _remove(directory: Path, owner: int) -> None:
    """Remove it at the end of the process that has made it, whose threads may be at work in it yet."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


async def _all(work: Iterator[Coroutine[Any, Any, None]]) -> None:
    """Do all of it at the same time; the first that fails is raised when all have ended."""
    for ended in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
