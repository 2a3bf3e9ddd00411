"""A broker's start and stop, its configuration at run time, and what it does for its components."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.broker import server
from headrace.broker.errors import StartRefused
from headrace.broker.image import TopicImage
from headrace.broker.requests.dispatch import load_handlers
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, Controller
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.api_versions import ApiVersionsRequest, ApiVersionsResponse
from headrace.security.listeners import Endpoint
from headrace.storage.directory import CLEAN_SHUTDOWN
from headrace.storage.errors import ForeignDirectory
from ports import free_port
from unit.broker.fake_session import FakeSession, FakeZooKeeper


def config(**given: str) -> BrokerConfig:
    return BrokerConfig.of(
        {"broker.id": "1"} | {name.replace("_", "."): text for name, text in given.items()}
    )


def test_a_broker_shares_quotas_with_the_live_brokers_of_its_node() -> None:
    def registration(broker_id: int, node: str) -> BrokerRegistration:
        endpoints = [Endpoint("PLAINTEXT", "here", 9092)]
        return BrokerRegistration(broker_id=broker_id, endpoints=endpoints, timestamp_ms=0, node=node)

    async def story() -> None:
        broker = Broker(config(headrace_node="m1"))
        broker.image.brokers = {1: registration(1, "m1"), 2: registration(2, "m1"), 3: registration(3, "m2")}
        broker.updated()
        assert broker.quotas.table.brokers == 2
        del broker.image.brokers[2]
        broker.updated()
        assert broker.quotas.table.brokers == 1

    run(story)


# -- start and stop ------------------------------------------------------------------------------


class Host:
    """One directory and one ZooKeeper, for brokers that are started one after the other."""

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.directory = directory
        self.zookeeper = FakeZooKeeper()
        self.sessions: list[FakeSession] = []
        monkeypatch.setattr(ZooKeeperSession, "connect", self._connect)

    def broker(self, **given: str) -> Broker:
        return Broker(
            config(**{"log_dirs": str(self.directory), "listeners": "PLAINTEXT://127.0.0.1:0"} | given)
        )

    @property
    def registered(self) -> BrokerRegistration | None:
        found = self.zookeeper.tree.get(BrokerRegistration.path_of(1))
        return None if found is None else BrokerRegistration.decode(1, found.data)

    async def _connect(self, *_arguments: Any, **_options: Any) -> FakeSession:
        self.sessions.append(FakeSession(self.zookeeper))
        return self.sessions[-1]


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(tmp_path / "logs", monkeypatch)


def run(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(story())


def test_a_started_broker_is_registered_with_the_port_that_it_listens_on_and_has_its_metadata(
    host: Host,
) -> None:
    async def story() -> None:
        broker = host.broker()
        await broker.start()
        try:
            (endpoint,) = broker.endpoints
            assert endpoint.port > 0
            assert broker.bootstrap == f"127.0.0.1:{endpoint.port}"
            assert host.registered is not None
            assert list(host.registered.endpoints) == [endpoint]
            assert broker.ready.is_set()
            assert broker.is_controller
            assert list(broker.image.brokers) == [1]
        finally:
            await broker.stop()

    run(story)


def test_a_stopped_broker_has_unregistered_and_left_a_clean_directory(host: Host) -> None:
    async def story() -> None:
        broker = host.broker()
        await broker.start()
        await broker.stop()

        assert host.registered is None
        assert host.zookeeper.tree.get(Controller.path) is None
        assert host.sessions[0].is_closed
        assert (host.directory / CLEAN_SHUTDOWN).exists()
        with pytest.raises(OSError, match="Connect"):
            await asyncio.open_connection("127.0.0.1", broker.endpoints[0].port)

    run(story)


def test_the_next_broker_of_a_directory_finds_the_cluster_id_and_a_new_controller_epoch(host: Host) -> None:
    async def story() -> None:
        ids, epochs = [], []
        for _ in range(2):
            broker = host.broker()
            await broker.start()
            ids.append(broker.image.cluster_id)
            assert broker.controller is not None
            epochs.append(broker.controller.epoch)
            await broker.stop()

        assert ids[0] == ids[1] != ""
        assert epochs == [1, 2]

    run(story)


def test_an_advertised_listener_is_registered_in_place_of_the_bound_one(host: Host) -> None:
    async def story() -> None:
        broker = host.broker(advertised_listeners="PLAINTEXT://broker.example:19092")
        await broker.start()
        await broker.stop()

        assert broker.bootstrap == "broker.example:19092"

    run(story)


def test_a_port_that_is_taken_refuses_the_start_and_releases_everything(host: Host) -> None:
    async def story() -> None:
        async def serve(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None: ...

        port = free_port()
        async with await asyncio.start_server(serve, "127.0.0.1", port):
            broker = host.broker(listeners=f"PLAINTEXT://127.0.0.1:{port}")
            with pytest.raises(StartRefused, match=f"127.0.0.1:{port}: something listens there already"):
                await broker.start()
        assert host.sessions[0].is_closed

        again = host.broker()  # the directory is not locked any more
        await again.start()
        await again.stop()

    run(story)


def test_the_directory_of_another_broker_refuses_the_start(host: Host) -> None:
    async def story() -> None:
        first = host.broker()
        await first.start()
        await first.stop()

        with pytest.raises(ForeignDirectory):
            await host.broker(broker_id="2").start()
        assert host.sessions[1].is_closed

    run(story)


def test_a_start_without_word_from_a_controller_is_refused(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_JOIN_TIMEOUT_S", 0)

    async def story() -> None:
        broker = host.broker()
        monkeypatch.setattr(broker, "updated", lambda: None)
        with pytest.raises(StartRefused, match="the controller has not sent the state of the cluster"):
            await broker.start()
        assert host.sessions[0].is_closed
        broker._leave_cluster()

    run(story)


def test_settings_without_effect_are_logged_at_the_start(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        broker = host.broker(num_io_threads="3")
        await broker.start()
        await broker.stop()

    run(story)
    assert "these settings have no effect: num.io.threads" in caplog.text


# -- configuration -------------------------------------------------------------------------------


@pytest.fixture
def broker() -> Broker:
    """A broker that is not started."""
    return Broker(config(num_partitions="3"))


def test_a_reload_applies_what_may_change_and_returns_what_needs_a_restart(broker: Broker) -> None:
    needs_restart = broker.reload(config(num_partitions="5", log_dirs="/elsewhere", message_max_bytes="2000"))

    assert needs_restart == ["log.dirs", "num.partitions"]
    assert broker.config.integer("message.max.bytes") == 2000
    assert broker.config.integer("num.partitions") == 3
    assert broker.config.log_dir != Path("/elsewhere")


def test_a_setting_that_is_gone_from_the_file_has_its_default_again(broker: Broker) -> None:
    default = broker.config.integer("message.max.bytes")
    broker.reload(config(num_partitions="3", message_max_bytes="2000"))

    assert broker.reload(config(num_partitions="3")) == []
    assert broker.config.integer("message.max.bytes") == default


def test_a_reload_keeps_the_dynamic_settings(broker: Broker) -> None:
    broker.config_changed("brokers", "<default>", {"message.max.bytes": "3000"})
    broker.reload(config(num_partitions="3", message_max_bytes="2000"))

    assert broker.config.integer("message.max.bytes") == 3000


def test_a_brokers_own_dynamic_settings_take_precedence_over_those_of_all(broker: Broker) -> None:
    broker.config_changed("brokers", "1", {"message.max.bytes": "1000"})
    broker.config_changed("brokers", "<default>", {"message.max.bytes": "3000"})
    assert broker.config.integer("message.max.bytes") == 1000

    broker.config_changed("brokers", "1", {})
    assert broker.config.integer("message.max.bytes") == 3000


def test_the_settings_of_another_broker_have_no_effect(broker: Broker) -> None:
    before = broker.config
    broker.config_changed("brokers", "2", {"message.max.bytes": "1000"})

    assert broker.config is before


def test_an_invalid_dynamic_setting_is_logged_and_ignored(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    before = broker.config
    broker.config_changed("brokers", "1", {"message.max.bytes": "many"})

    assert broker.config is before
    assert "the configuration of broker 1 in ZooKeeper is ignored" in caplog.text


def test_the_settings_of_a_group_are_kept_until_they_are_removed(broker: Broker) -> None:
    values = {"consumer.session.timeout.ms": "50000"}
    broker.config_changed("groups", "billing", values)
    assert broker.image.group_configs == {"billing": values}

    broker.config_changed("groups", "billing", {})
    assert broker.image.group_configs == {}


def test_invalid_settings_of_a_group_are_logged_and_ignored(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.config_changed("groups", "billing", {"consumer.session.timeout.ms": "soon"})

    assert broker.image.group_configs == {}
    assert "the configuration of group 'billing' in ZooKeeper is ignored" in caplog.text


def test_the_settings_of_a_topic_are_kept_if_the_topic_is_known(host: Host) -> None:
    async def story() -> None:
        broker = host.broker()
        await broker.start()
        broker.image.topics["orders"] = TopicImage("orders", bytes(16), {}, {})
        for name in ("orders", "unknown"):
            broker.config_changed("topics", name, {"retention.ms": "1000"})
        assert broker.image.topic_configs == {"orders": {"retention.ms": "1000"}}
        await broker.stop()

    run(story)


# -- other brokers -------------------------------------------------------------------------------


def test_a_broker_answers_its_own_requests(broker: Broker) -> None:
    load_handlers()
    request = ApiVersionsRequest(client_software_name="headrace", client_software_version="1")

    response = asyncio.run(broker.handle_locally(request, 3))

    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == 0


def test_a_broker_that_is_not_registered_cannot_be_connected_to(broker: Broker) -> None:
    with pytest.raises(PeerGone, match="broker 7 is not registered"):
        asyncio.run(broker.connect_to(7))


# -- progress ------------------------------------------------------------------------------------


def test_loading_logs_is_reported_every_two_seconds_and_at_its_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    times = iter([100.0, 101.0, 102.5, 103.0, 103.5])
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: next(times)))
    progress = server._LoadingProgress()
    for done in (1, 2, 3, 4):
        progress(done, 4)

    assert caplog.messages == ["loading logs: 2 of 4, after 2 s", "loading logs: 4 of 4, after 4 s"]


def test_logs_that_are_loaded_at_once_are_not_reported(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(server, "time", SimpleNamespace(monotonic=lambda: 100.0))
    progress = server._LoadingProgress()
    progress(1, 2)
    progress(2, 2)

    assert caplog.messages == []
