"""A broker whose ZooKeeper goes away and comes back, seen through a proxy that can be cut."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from headrace.broker.membership.cluster import ClusterView
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.embedded.server import Coordinator
from headrace.coordination.session import NotConnected, Operation, SessionState, ZooKeeperSession
from headrace.coordination.znodes import Config, ConfigChange, Controller
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from wire.raw import RawClient

REGISTRATION = "/brokers/ids/1"


def controller_epoch(broker: Broker) -> int:
    return 0 if broker.controller is None else broker.controller.epoch


class Proxy:
    """Passes bytes on to a server, until it is cut or muted."""

    def __init__(self, address: str) -> None:
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._through = asyncio.Event()
        self._through.set()
        self._cut = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self.cut()
        self._server.close()
        for task in self._tasks:
            task.cancel()

    def cut(self) -> None:
        """Close every connection, and every one that comes."""
        self._cut = True
        for writer in self._writers:
            writer.close()

    def mute(self) -> None:
        """Keep the connections, and pass nothing on."""
        self._through.clear()

    def mend(self) -> None:
        self._cut = False
        self._through.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._cut:
            writer.close()
            return
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        for source, target in ((reader, far_writer), (far_reader, writer)):
            self._writers.add(target)
            task = asyncio.create_task(self._pass(source, target))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                await self._through.wait()
                target.write(data)
        target.close()


@dataclass
class Setup:
    broker: Broker
    proxy: Proxy
    other: ZooKeeperSession  # straight to the coordinator

    async def lose_session(self) -> None:
        """Cut the broker off until ZooKeeper has given it up."""
        self.proxy.cut()
        while await self.other.exists(REGISTRATION):  # noqa: ASYNC110  nobody else can tell
            await asyncio.sleep(0.02)

    async def suspend(self) -> None:
        self.proxy.cut()
        with contextlib.suppress(NotConnected):
            while True:
                await self.broker.session.exists(REGISTRATION)
                await asyncio.sleep(0.01)


async def eventually(true: Callable[[], bool], within_s: float = 15) -> None:
    async with asyncio.timeout(within_s):
        while not true():  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running(root: Path, session_timeout_ms: int = 1000) -> AsyncIterator[Setup]:
    async with (
        Coordinator(root / "coordinator", port=0, tick_ms=session_timeout_ms // 4, sync=False) as coordinator,
        Proxy(coordinator.address) as proxy,
    ):
        other = await ZooKeeperSession.connect(
            coordinator.address, session_timeout_ms=5000, connect_timeout_ms=5000
        )
        broker = Broker(
            BrokerConfig.of(
                {
                    "broker.id": "1",
                    "log.dirs": str(root / "logs"),
                    "listeners": "PLAINTEXT://127.0.0.1:0",
                    "zookeeper.connect": proxy.address,
                    "zookeeper.session.timeout.ms": str(session_timeout_ms),
                }
            )
        )
        await broker.start()
        try:
            yield Setup(broker, proxy, other)
        finally:
            await broker.stop()
            await other.close()


async def configure(other: ZooKeeperSession, retention_ms: str) -> str:
    """Change a setting of the topic `kept`, as another broker would; return the path of the notification."""
    config = Config(kind="topics", name="kept", values={"retention.ms": retention_ms})
    await other.set(config.path, config.encode())
    return await notify(other, "topics/kept")


async def notify(other: ZooKeeperSession, entity: str) -> str:
    return await other.create(ConfigChange.prefix, ConfigChange(entity=entity).encode(), sequence=True)


def test_a_broker_reads_all_configs_again_if_notifications_were_removed_before_it_saw_them(
    tmp_path: Path,
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as setup:
            broker, other = setup.broker, setup.other
            await broker.topic_admin.create("kept")
            await broker.topic_admin.propagated()
            await setup.lose_session()
            missed = await configure(other, "77")
            await notify(other, "brokers/9")
            await other.delete(missed)

            setup.proxy.mend()

            await eventually(lambda: broker.image.topic_configs["kept"] == {"retention.ms": "77"})

    asyncio.run(scenario())


def test_a_broker_joins_again_after_its_session_was_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as setup:
            broker, other = setup.broker, setup.other
            await broker.topic_admin.create("kept")
            await broker.topic_admin.propagated()
            epoch = controller_epoch(broker)
            await setup.lose_session()
            await configure(other, "77")

            setup.proxy.mend()

            await eventually(lambda: controller_epoch(broker) == epoch + 1)
            await eventually(lambda: broker.image.topic_configs["kept"] == {"retention.ms": "77"})
            await eventually(lambda: 1 in broker.image.brokers)
            found = await other.get(REGISTRATION)
            assert found is not None
            assert found.ephemeral_owner == broker.session.session_id
            await broker.topic_admin.create("after")
            await broker.topic_admin.propagated()

    asyncio.run(scenario())


def test_a_broker_whose_first_attempts_to_join_again_fail_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as setup:
            broker, session = setup.broker, setup.broker.session
            multi, attempts = session.multi, 0

            async def fail_at_first(operations: Sequence[Operation]) -> None:
                nonlocal attempts
                registers = operations[0].path == REGISTRATION
                attempts += registers
                await multi(operations)
                if registers and attempts < 2:
                    raise NotConnected("the answer got lost")

            monkeypatch.setattr(session, "multi", fail_at_first)
            await setup.lose_session()
            epoch = controller_epoch(broker)

            setup.proxy.mend()

            # Registered in vain: that is found to be its own.
            await eventually(lambda: controller_epoch(broker) > epoch)
            await eventually(lambda: broker.image.controller_id == 1)
            assert attempts > 1
            assert await setup.other.exists(REGISTRATION)

    asyncio.run(scenario())


def test_a_session_that_is_lost_during_the_start_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        load, lost = ClusterView.load, 0

        async def lose_at_first(view: ClusterView) -> None:
            nonlocal lost
            lost += 1
            await load(view)
            if lost == 1:
                (session,) = sessions
                await session.delete(REGISTRATION)
                session._to_loop(session._on_state, SessionState.LOST)  # as for a state of kazoo
                await asyncio.sleep(0)

        sessions: list[ZooKeeperSession] = []
        on_state = ZooKeeperSession.on_state

        def note(session: ZooKeeperSession, callback: Callable[[SessionState], None]) -> None:
            if getattr(callback, "__name__", "") == "_session_changed":
                sessions.append(session)
            on_state(session, callback)

        monkeypatch.setattr(ZooKeeperSession, "on_state", note)
        monkeypatch.setattr(ClusterView, "load", lose_at_first)
        async with running(tmp_path) as setup:
            await eventually(lambda: lost == 2)
            assert await setup.other.exists(REGISTRATION)

    asyncio.run(scenario())


def test_a_broker_that_was_cut_off_for_a_moment_sees_what_it_missed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path, session_timeout_ms=8000) as setup:
            broker, other = setup.broker, setup.other
            await broker.topic_admin.create("kept")
            await broker.topic_admin.propagated()
            await setup.suspend()
            await configure(other, "77")

            setup.proxy.mend()

            await eventually(lambda: broker.image.topic_configs["kept"] == {"retention.ms": "77"})
            # And what comes later: the watches are there again.
            await configure(other, "78")
            await eventually(lambda: broker.image.topic_configs["kept"] == {"retention.ms": "78"})

    asyncio.run(scenario())


def test_a_broker_becomes_the_controller_when_there_is_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(tmp_path) as setup:
            epoch = controller_epoch(setup.broker)

            await setup.other.delete(Controller.path)

            await eventually(lambda: controller_epoch(setup.broker) == epoch + 1)
            await eventually(lambda: setup.broker.image.controller_id == 1)

    asyncio.run(scenario())


def test_a_topic_is_made_when_zookeeper_comes_back_in_time(tmp_path: Path) -> None:
    def ask(bootstrap: str) -> int:
        with RawClient(bootstrap) as client:
            topic = CreatableTopic(
                name="new", num_partitions=1, replication_factor=1, assignments=(), configs=()
            )
            made = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), version=7)
            return int(made.topics[0].error_code)

    async def scenario() -> None:
        async with running(tmp_path, session_timeout_ms=8000) as setup:
            await setup.suspend()
            asking = asyncio.create_task(asyncio.to_thread(ask, setup.broker.bootstrap))
            await asyncio.sleep(0.2)  # so that it is on its way, not answered at once
            setup.proxy.mend()
            assert await asking == ErrorCode.NONE
            assert "new" in setup.broker.image.topics

    asyncio.run(scenario())


def test_without_zookeeper_requests_are_answered_and_a_stop_is_fast(tmp_path: Path) -> None:
    def ask(bootstrap: str) -> tuple[int, int]:
        with RawClient(bootstrap) as client:
            metadata = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="new")]), version=9)
            producer = client.ask(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), version=2
            )
            return metadata.topics[0].error_code, producer.error_code

    async def scenario() -> float:
        async with running(tmp_path, session_timeout_ms=8000) as setup:
            await setup.suspend()
            began = time.monotonic()
            codes = await asyncio.to_thread(ask, setup.broker.bootstrap)
            assert codes == (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            assert time.monotonic() - began < 2
            await setup.other.close()
            began = time.monotonic()
        return time.monotonic() - began

    assert asyncio.run(scenario()) < 4


def test_a_call_that_is_not_answered_ends_and_so_does_closing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with (
            Coordinator(tmp_path, port=0, sync=False) as coordinator,
            Proxy(coordinator.address) as proxy,
        ):
            session = await ZooKeeperSession.connect(
                proxy.address, session_timeout_ms=30_000, connect_timeout_ms=5000, call_timeout_s=0.2
            )
            proxy.mute()
            with pytest.raises(NotConnected, match=r"not responded within 0\.2 s"):
                await session.exists("/")
            began = time.monotonic()
            await session.close()
            assert time.monotonic() - began < 20  # the session would last for 30 s

    asyncio.run(scenario())
