"""Brokers for the tests of this directory: one that they share, and one each for those that harm it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from compat.group_conversations.alone import broker_for_groups
from wire.group_stories.brokers import quick_broker
from wire.issuer import Issuer
from wire.process import BrokerProcess
from wire.raw import RawClient


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker that many tests use, each with topics of its own. At the end its log is clean."""
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        assert process.running
        assert process.complaints() == []


@pytest.fixture(scope="session")
def quick_groups(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker on which members may have short sessions and heartbeats. At the end its log is clean."""
    with quick_broker(tmp_path_factory.mktemp("quick")) as process:
        yield process


@pytest.fixture(scope="session")
def group_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """A broker with small limits of groups, for raw requests. At the end its log is clean."""
    with broker_for_groups(tmp_path_factory.mktemp("groups")) as process:
        yield process


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker for one test alone."""
    with BrokerProcess(tmp_path / "own") as process:
        yield process


@pytest.fixture
def raw(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        yield client


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    """An issuer of tokens, whose keys are in a file."""
    return Issuer(tmp_path_factory.mktemp("issuer") / "jwks.json")
