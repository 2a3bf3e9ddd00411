"""Consumers that wait, and those who do not wait for them."""

import threading
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.gateway.app import create_app
from headrace.gateway.configuration import GatewaySettings
from headrace.gateway.problems import Problem
from headrace.gateway.rest import instances as module
from headrace.gateway.rest.hub import READING, Hub
from headrace.gateway.rest.instance import ConsumerOptions, Instance
from headrace.gateway.rest.instances import Instances

NOWHERE = "127.0.0.1:1"
ADDRESS = "/consumers/g/instances/i"


class Stuck(Instance):
    """One whose brokers do not answer when it leaves its group."""

    def __init__(self) -> None:
        super().__init__(NOWHERE, "g", "i", ConsumerOptions())
        self.leaving = threading.Event()
        self.answered = threading.Event()

    def close(self) -> None:
        self.leaving.set()
        assert self.answered.wait(60)
        super().close()


@pytest.fixture
def stuck() -> Iterator[Stuck]:
    instance = Stuck()
    yield instance
    instance.answered.set()
    instance.close()


@pytest.fixture
def app() -> FastAPI:
    return create_app(GatewaySettings(bootstrap=NOWHERE))


def test_a_consumer_is_gone_though_its_brokers_do_not_answer(stuck: Stuck) -> None:
    instances = Instances(lambda: NOWHERE, closing_s=0)
    instances._instances["g", "i"] = stuck

    instances.delete("g", "i")

    assert not stuck.answered.is_set()
    with pytest.raises(Problem, match="has no consumer"):
        instances.get("g", "i")
    assert stuck.leaving.wait(60)  # behind our back


def test_one_that_is_being_closed_still_counts(stuck: Stuck, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_INSTANCES", 1)
    monkeypatch.setattr(ConnectionSettings, "check", lambda _: None)
    instances = Instances(lambda: NOWHERE, closing_s=0)
    instances._instances["g", "i"] = stuck
    instances.delete("g", "i")

    with pytest.raises(Problem, match="the most at a time"):
        instances.create("g", "another", ConsumerOptions())


def test_reads_that_wait_leave_room_for_all_else(app: FastAPI) -> None:
    hub = app.state.hub
    assert isinstance(hub, Hub)
    hub.instances._instances["g", "i"] = Instance(NOWHERE, "g", "i", ConsumerOptions())
    with TestClient(app, base_url="http://localhost") as client:
        assert client.portal is not None
        assert client.post(f"{ADDRESS}/subscription", json={"topics": ["t"]}).status_code == 204
        assert client.get(f"{ADDRESS}/records?timeout=0").json() == []
        for number in range(READING):
            client.portal.call(hub._limits.reading.acquire_on_behalf_of_nowait, number)

        refused = client.get(f"{ADDRESS}/records?timeout=0")

        assert (refused.status_code, refused.json()["error_code"]) == (429, 42904)
        assert client.delete(f"{ADDRESS}/subscription").status_code == 204
        assert client.delete(ADDRESS).status_code == 204
