"""A broker for tests, which starts in about 30 milliseconds, and what it shares with a cluster.

with Broker(topics={"orders": 3}) as broker:
    Producer({"bootstrap.servers": broker.bootstrap})
    ...
    assert [record.value for record in broker.records("orders")] == [b"tea"]
"""

import asyncio
import atexit
import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from headrace.coordination.embedded.server import Coordinator
from headrace.system.background import CANNOT_STOP
from headrace.system.extras import HTTP, SECURITY, importing, require
from headrace.system.ports import reserved
from headrace.testing.captured_log import CapturedLog
from headrace.testing.faults import Faults
from headrace.testing.loop_thread import LoopThread
from headrace.testing.nodes import BrokerNode, EmbeddedBroker, EmbeddedNode, ProcessNode

if TYPE_CHECKING:  # confluent-kafka is imported when it is first needed: a test may have another client
    from headrace.client.admin.admin import Admin
    from headrace.client.records.one_by_one import Headers, Receipt, Record
    from headrace.testing.client import FixtureClient, Text
    from headrace.testing.client_settings import ClientSettings
    from headrace.testing.secured import SecuredBrokers

HOST: Final = "127.0.0.1"
TIMEOUT_S: Final = 10.0
_THIS_PROCESS: Final = 0  # in place of a broker id: the coordinator, and brokers that are no processes

_numbers = itertools.count(1)

Settings = Mapping[str, object]
"""Settings by Kafka's names; values may be strings, numbers or booleans."""

Topics = Mapping[str, int | Mapping[str, Any]] | Iterable[str]
"""Topics to create: ["orders"], {"orders": 6}, or {"orders": {"partitions": 6, "configs": {...}}}."""

IsolationLevel = Literal["read_uncommitted", "read_committed"]

_QUICK: Final = {
    "group.initial.rebalance.delay.ms": "0",  # a test with one consumer does not wait for a second
    "group.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_FOR_SEVERAL: Final = {
    "zookeeper.session.timeout.ms": "6000",  # a paused broker counts as gone after this
    "replica.lag.time.max.ms": "6000",
}
_DECIDED: Final = (
    *("broker.id", "node.id", "log.dirs", "log.dir"),
    *("listeners", "advertised.listeners", "zookeeper.connect"),
)


def as_text(settings: Settings) -> dict[str, str]:
    """Return settings as in a properties file; ValueError for one that the fixture decides."""
    for name in _DECIDED:
        if name in settings:
            raise ValueError(f"{name} is decided by the fixture: leave it out")
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in settings.items()
    }


class RunningBrokers:
    """Brokers 1, 2, 3 and so on, from `start` to `stop`, or for a `with` block."""

    def __init__(
        self,
        brokers: int,
        settings: Settings | None,
        *,
        topics: Topics | None,
        process: bool,
        data: Path | str | None,
        secure: bool,
    ) -> None:
        self._count = brokers
        self._given = as_text(settings or {})
        self._secure = secure
        self._secured: SecuredBrokers | None = None  # while they run, if `secure`
        self._root = Path()
        self._topics = _by_name(topics or {})
        self._process = process
        self._data = None if data is None else Path(data)
        self._name = f"headrace-testing-{next(_numbers)}-"
        self._loop = LoopThread(self._name, stop_at_exit=self.stop)
        self._log = CapturedLog(self._name)
        self._faults = Faults(self._embedded, self._call, self._kill_soon)
        self._nodes: dict[int, BrokerNode] = {}
        self._ports: dict[int, int] = {}
        self._stack = ExitStack()
        self._owner = 0  # the process that has started them, while they run

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> Self:
        """Return when clients can connect and all topics exist."""
        assert not self._owner, "it runs already"
        self._owner = os.getpid()
        try:
            self._root = self._directory()
            self._log.is_kept = True
            self._log.open()
            self._stack.callback(self._log.close)
            self._loop = LoopThread(self._name, stop_at_exit=self.stop)
            self._loop.start()
            self._stack.callback(self._loop.stop)
            # Without sync: no test reads the data again after a loss of power.
            coordinator = Coordinator(self._root / "coordinator", HOST, port=0, sync=False)
            self._loop.run(coordinator.start())
            self._stack.callback(lambda: self._loop.run(coordinator.stop()))
            self._loop.call(coordinator.end_sessions)
            if self._secure:  # certificates and the administrator, before the first broker starts
                from headrace.testing.secured import SecuredBrokers  # noqa: PLC0415

                require(SECURITY, "secure=True")
                self._secured = SecuredBrokers(self._root, self._count, HOST)
                self._loop.run(self._secured.create_administrator(coordinator.address))
            self._make_nodes(self._root, coordinator.address)
            self._loop.run(_all(node.start() for node in self._nodes.values()))
            for name, topic in self._topics.items():
                self.create_topic(name, **({"partitions": topic} if isinstance(topic, int) else topic))
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop, and leave no thread, file or process; do nothing in a process that has not started it."""
        for name in ("admin", "http"):  # the next start has others
            self.__dict__.pop(name, None)
        if self._owner == os.getpid():
            self._owner = 0
            self._log.is_kept = False  # warnings of the shutdown are of no interest
            self._stack.close()

    @property
    def bootstrap(self) -> str:
        """The addresses that clients connect to: `bootstrap.servers`."""
        if not self._owner:
            raise RuntimeError("it is not running: use a `with` block, or start()")
        return ",".join(map(self._address, self._ports))

    @property
    def faults(self) -> Faults:
        """Faults between clients and brokers; see `headrace.testing.faults`."""
        if self._process:
            raise RuntimeError("faults are for brokers in this process: leave out process=True")
        return self._faults

    @property
    def log(self) -> list[str]:
        """Every log line of the brokers that is a warning or worse."""
        return self.log_since({})

    def log_since(self, seen: Mapping[int, int]) -> list[str]:
        """Return the lines of `log` since `log_seen` returned `seen`."""
        lines = self._log.since(seen.get(_THIS_PROCESS, 0))
        for broker_id, warnings in self._warnings().items():
            lines += warnings[seen.get(broker_id, 0) :]
        return lines

    @property
    def log_seen(self) -> Mapping[int, int]:
        """How many lines there are: of this process, and of each broker in a process of its own."""
        of_processes = {broker_id: len(warnings) for broker_id, warnings in self._warnings().items()}
        return {_THIS_PROCESS: self._log.count, **of_processes}

    @property
    def client(self) -> "ClientSettings":
        """How clients connect; with `secure`, as the administrator, who may do everything."""
        from headrace.testing.client_settings import ClientSettings  # noqa: PLC0415

        if self._secured is not None:
            return self._secured.administrator(self.bootstrap)
        return ClientSettings(self.bootstrap, self._root)

    def add_user(
        self,
        name: str,
        *,
        password: str | None = None,
        produces: Iterable[str] = (),
        consumes: Iterable[str] = (),
        groups: Iterable[str] = (),
        transactional_ids: Iterable[str] = (),
    ) -> "ClientSettings":
        """Add a user to a secured cluster, and return how the user connects.

        The user may write to the topics that it `produces`, and read those that it `consumes`, in `groups`;
        `admin.create_acls` allows more.
        """
        if self._secured is None:
            raise RuntimeError("only a secured cluster has users: use secure=True")
        topics = {"produces": produces, "consumes": consumes}
        allowed = {**topics, "groups": groups, "transactional_ids": transactional_ids}
        return self._secured.add_user(self.bootstrap, name, password, allowed)

    @cached_property
    def admin(self) -> "Admin":
        """Topics, settings, offsets: `headrace.client.admin.admin.Admin`."""
        from headrace.client.admin.admin import Admin  # noqa: PLC0415

        return Admin(self.client.connection)

    @cached_property
    def http(self) -> str:
        """The URL of an HTTP gateway with the schema registry, which the first use starts."""
        with importing(HTTP, "the HTTP gateway of the fixture"):
            from headrace.gateway.serving import serve_in_thread  # noqa: PLC0415  for tests that need it
        secured = {} if self._secured is None else self._secured.gateway(self.client.connection)
        gateway = self._stack.enter_context(serve_in_thread(self.bootstrap, **secured))
        return str(gateway.url)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Settings | None = None,
    ) -> None:
        """Create a topic, and return when every broker knows its leaders; TopicExists if it exists."""
        self._client().create_topic(
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
        """Write a record for each value, and return when all of them are acknowledged."""
        return self._client().write(topic, values, key, headers, partition)

    def records(
        self,
        topic: str,
        *,
        count: int | None = None,
        timeout_s: float = TIMEOUT_S,
        isolation_level: IsolationLevel = "read_uncommitted",
    ) -> "list[Record]":
        """Return every record of `topic` by partition and offset; with `count`, once there are so many.

        With "read_committed", records of open and of aborted transactions are left out.
        """
        if isolation_level not in {"read_committed", "read_uncommitted"}:
            raise ValueError(
                f"isolation_level={isolation_level!r}: expected 'read_committed' or 'read_uncommitted'"
            )
        return self._client().records(
            topic, count, timeout_s, read_committed=isolation_level == "read_committed"
        )

    def kill(self, broker_id: int | None = None) -> None:
        """End a broker as a crash would, with SIGKILL if it is a process; `restart` starts it again."""
        self._loop.run(self._node(broker_id).kill())

    def restart(self, broker_id: int | None = None) -> None:
        """Restart a broker with the same port and data; if it runs, shut it down cleanly first."""
        node = self._node(broker_id)
        self._loop.run(node.stop())
        self._loop.run(node.start())

    def pause(self, broker_id: int | None = None) -> None:
        """Pause a broker's process (SIGSTOP): connections stay open, but it does not answer."""
        self._process_node(broker_id).signal(signal.SIGSTOP)

    def resume(self, broker_id: int | None = None) -> None:
        """Resume a broker's process."""
        self._process_node(broker_id).signal(signal.SIGCONT)

    def _client(self) -> "FixtureClient":
        from headrace.testing.client import FixtureClient  # noqa: PLC0415

        return FixtureClient(self.client.connection)

    def _directory(self) -> Path:
        """Return the directory of the data: the one that was given, or a temporary one."""
        if self._data is not None:
            self._data.mkdir(parents=True, exist_ok=True)
            return self._data
        made = Path(tempfile.mkdtemp(prefix="headrace-testing-"))
        self._stack.callback(shutil.rmtree, made)
        if CANNOT_STOP:
            remove = partial(_remove, made, os.getpid())  # after a script that never stops its broker
            atexit.register(remove)
            self._stack.callback(atexit.unregister, remove)
        return made

    def _make_nodes(self, root: Path, zookeeper: str) -> None:
        self._stack.callback(self._end_nodes)
        self._ports.clear()
        # The ports stay reserved, so that a broker that was stopped can listen on its port again.
        ports = self._stack.enter_context(reserved(HOST, 0, self._count))
        self._ports.update(enumerate(ports, start=1))
        replicas = str(min(3, self._count))
        for broker_id, port in self._ports.items():
            settings = {
                **_QUICK,
                "default.replication.factor": replicas,
                "offsets.topic.replication.factor": replicas,
                **(_FOR_SEVERAL if self._count > 1 else {}),
                **self._given,
                "broker.id": str(broker_id),
                "log.dirs": str(root / f"broker-{broker_id}"),
                "zookeeper.connect": zookeeper,
            }
            if self._secured is None:
                settings["listeners"] = f"PLAINTEXT://{HOST}:{port}"
            else:
                settings |= self._secured.broker_settings(broker_id, port, self._given)
            self._nodes[broker_id] = (
                ProcessNode(settings, root / f"broker-{broker_id}.log")
                if self._process
                else EmbeddedNode(settings, self._faults)
            )

    def _end_nodes(self) -> None:
        """Stop the brokers; kill them if their data is temporary, which is faster."""
        nodes, self._nodes = self._nodes, {}
        self._loop.run(_all(node.kill() if self._data is None else node.stop() for node in nodes.values()))

    def _call(self, function: Callable[..., Any], *args: Any) -> Any:
        return self._loop.call(function, *args)

    def _address(self, broker_id: int) -> str:
        return f"{HOST}:{self._ports[broker_id]}"

    def _node(self, broker_id: int | None) -> BrokerNode:
        if broker_id is None and len(self._nodes) == 1:
            (broker_id,) = self._nodes
        if broker_id not in self._nodes:
            raise ValueError(f"there is no broker {broker_id}, only {', '.join(map(str, self._nodes))}")
        return self._nodes[broker_id]

    def _process_node(self, broker_id: int | None) -> ProcessNode:
        node = self._node(broker_id)
        if not isinstance(node, ProcessNode):
            raise RuntimeError("only a process can be paused: use process=True")  # noqa: TRY004
        return node

    def _warnings(self) -> dict[int, list[str]]:
        """Return the warnings of each broker that is a process of its own."""
        nodes = self._nodes.values()
        return {node.broker_id: node.warnings() for node in nodes if isinstance(node, ProcessNode)}

    def _kill_soon(self, broker_id: int, *, restart: bool) -> None:
        """Begin to kill a broker, for a fault. Called on the loop."""
        node = self._nodes[broker_id]
        assert isinstance(node, EmbeddedNode), "processes have no faults"
        node.kill_soon(restart=restart)

    def _embedded(self) -> Iterator[EmbeddedBroker]:
        for node in self._nodes.values():
            if isinstance(node, EmbeddedNode) and node.broker is not None:
                yield node.broker


class Broker(RunningBrokers):
    """One broker, in a thread of this process; with `process`, as a process of its own.

    Its data is in a temporary directory, or in `data`, where it stays. With `secure`, clients connect by TLS
    and authenticate by SCRAM, and ACLs say what they may do: see `client` and `add_user`.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        topics: Topics | None = None,
        process: bool = False,
        data: Path | str | None = None,
        secure: bool = False,
    ) -> None:
        super().__init__(1, settings, topics=topics, process=process, data=data, secure=secure)

    @property
    def pid(self) -> int:
        """The id of its process."""
        return self._process_node(None).pid


def _by_name(topics: Topics) -> dict[str, int | Mapping[str, Any]]:
    """Return the partitions or options of each topic; a topic without either has one partition."""
    if isinstance(topics, str):
        raise TypeError(f"topics={topics!r}: expected a list of names, or partitions by name")
    return dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, 1)


def _remove(directory: Path, owner: int) -> None:
    """Remove the directory at the exit of the process that made it; its threads may still be writing."""
    if os.getpid() == owner:
        shutil.rmtree(directory, ignore_errors=True)


async def _all(work: Iterator[Coroutine[Any, Any, None]]) -> None:
    """Run all at the same time; raise the first error when all have ended."""
    for ended in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(ended, BaseException):
            raise ended
