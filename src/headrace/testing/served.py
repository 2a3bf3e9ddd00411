"""Brokers and their coordinator for as long as a test needs them: what Broker and Cluster share."""

import asyncio
import atexit
import itertools
import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from headrace.coordination.embedded.server import Coordinator
from headrace.testing.captured_log import CapturedLog
from headrace.testing.embedded import EmbeddedBroker
from headrace.testing.faults import Faults
from headrace.testing.loop_thread import LoopThread
from headrace.testing.nodes import Beside, Inside, Node
from headrace.testing.settings import Settings, as_text, broker_settings

if TYPE_CHECKING:  # confluent-kafka is imported when it is first needed: a test may have another client
    from headrace.client.admin import Admin
    from headrace.client.records import Headers, Receipt, Record
    from headrace.testing.asking import Asking, Text

HOST: Final = "127.0.0.1"
PATIENCE_S: Final = 10.0

Topics = Mapping[str, int | Mapping[str, Any]]
"""Topics to begin with: {"orders": 6}, or {"orders": {"partitions": 6, "configs": {...}}}."""

T = TypeVar("T")
_numbers = itertools.count(1)


class Served:
    """Brokers 1, 2, 3 and so on, from `start` to `stop`, or for a `with` block. Nothing of them stays."""

    def __init__(
        self,
        brokers: int,
        settings: Settings | None,
        *,
        topics: Topics | None,
        process: bool,
        data: Path | str | None,
    ) -> None:
        self._count = brokers
        self._given = as_text(settings or {})
        self._topics = dict(topics or {})
        self._process = process
        self._data = None if data is None else Path(data)
        self._name = f"headrace-testing-{next(_numbers)}-"
        self._loop = LoopThread(self._name)
        self._log = CapturedLog(self._name)
        self._faults = Faults(self._embedded, self._call)
        self._nodes: dict[int, Node] = {}
        self._ports: dict[int, int] = {}
        self._stack = ExitStack()
        self._owner = 0  # the process that has started it, while it runs

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # -- life ----------------------------------------------------------------------------------

    def start(self) -> None:
        """Return when clients can connect, and the topics to begin with are there."""
        assert not self._owner, "it runs already"
        self._owner = os.getpid()
        try:
            root = self._directory()
            self._start_loop()
            zookeeper = self._start_coordinator(root)
            self._make_nodes(root, zookeeper)
            self._loop.run(_all(node.start() for node in self._nodes.values()))
            for name, wanted in self._topics.items():
                self.create_topic(name, **({"partitions": wanted} if isinstance(wanted, int) else wanted))
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Leave no thread, no file, no process; fine if there is none, or if it is another process's."""
        if self._owner == os.getpid():
            self._owner = 0
            self._log.is_kept = False  # what follows is nothing to complain of
            self._stack.close()

    def _directory(self) -> Path:
        """Where the data is: the directory that was given, which stays, or one that goes."""
        if self._data is not None:
            self._data.mkdir(parents=True, exist_ok=True)
            return self._data
        made = Path(tempfile.mkdtemp(prefix="headrace-testing-"))
        self._stack.callback(shutil.rmtree, made)
        forgotten = partial(_remove, made, os.getpid())  # by a script that never stops its broker
        atexit.register(forgotten)
        self._stack.callback(atexit.unregister, forgotten)
        return made

    def _start_loop(self) -> None:
        self._log.is_kept = True
        self._log.open()
        self._stack.callback(self._log.close)
        self._loop = LoopThread(self._name)
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
        for broker_id in range(1, self._count + 1):
            self._ports[broker_id] = self._stack.enter_context(_bound()).getsockname()[1]
            settings = broker_settings(self._count, self._given) | {
                "broker.id": str(broker_id),
                "log.dirs": str(root / f"broker-{broker_id}"),
                "listeners": f"PLAINTEXT://{HOST}:{self._ports[broker_id]}",
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
        for name in ("admin", "http"):
            self.__dict__.pop(name, None)
        self._loop.run(_all(node.kill() if self._data is None else node.stop() for node in nodes.values()))

    # -- what tests ask for --------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """What clients connect to: `bootstrap.servers`."""
        if not self._owner:
            raise RuntimeError("it is not running: use a `with` block, or start()")
        return ",".join(map(self._address, self._ports))

    @property
    def faults(self) -> Faults:
        """What goes wrong between clients and brokers; see `headrace.testing.faults`."""
        if self._process:
            raise RuntimeError("faults are for brokers in this process: leave out process=True")
        return self._faults

    @property
    def log(self) -> list[str]:
        """What the brokers complain of: every line of theirs that is a warning or worse."""
        return self.log_since(0)

    def log_since(self, lines: int) -> list[str]:
        """The same without the first so many lines; `log_lines` says how many there are."""
        beside = self._said_beside()
        if beside:
            return beside[lines:]
        return self._log.since(lines)

    @property
    def log_lines(self) -> int:
        return self._log.count + len(self._said_beside())

    @property
    def is_in_process(self) -> bool:
        """Whether its brokers are in this process, and can be given faults."""
        return not self._process

    @cached_property
    def admin(self) -> "Admin":
        """Topics, settings, offsets: `headrace.client.admin.Admin`."""
        from headrace.client.admin import Admin  # noqa: PLC0415

        return Admin(self.bootstrap)

    @cached_property
    def http(self) -> str:
        """The URL of an HTTP gateway with the schema registry, started when this is first asked for."""
        from headrace.http.serving import serve_in_thread  # noqa: PLC0415  FastAPI, for those who want it

        gateway = self._stack.enter_context(serve_in_thread(self.bootstrap))
        return str(gateway.url)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Settings | None = None,
    ) -> None:
        """Make a topic; on return every broker knows who leads it. TopicExists if it is there."""
        self._asking().create_topic(
            name, partitions=partitions, replicas=replicas, configs=as_text(configs or {})
        )

    def produce(
        self,
        topic: str,
        *values: "Text",
        key: "Text" = None,
        headers: "Headers" = (),
        partition: int | None = None,
    ) -> "Receipt":
        """Write a record of each value, and return when all of them are acknowledged."""
        return self._asking().write(topic, values, key, headers, partition)

    def records(
        self, topic: str, *, count: int | None = None, timeout_s: float = PATIENCE_S
    ) -> "list[Record]":
        """Every record of `topic` as it is now, by partition and offset; or once there are `count`."""
        return self._asking().records(topic, count, timeout_s)

    # -- its parts -----------------------------------------------------------------------------

    def _asking(self) -> "Asking":
        from headrace.testing.asking import Asking  # noqa: PLC0415

        return Asking(self.bootstrap)

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

    def _said_beside(self) -> list[str]:
        beside = [each for each in self._nodes.values() if isinstance(each, Beside)]
        return [line for node in beside for line in node.warnings()]

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


def _bound() -> socket.socket:
    """A port that stays the broker's between two lives: a socket that is bound and does not listen."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((HOST, 0))
    return bound
