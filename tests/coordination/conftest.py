"""The same tests against the embedded coordinator and against Apache ZooKeeper."""

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from kazoo.client import KazooClient

from coordination.processes import CoordinatorProcess
from coordination.secured import SecuredServer, secured_coordinator, secured_zookeeper
from coordination.wire import Wire
from headrace.coordination.errors import ZooKeeperUnavailable
from headrace.coordination.zookeeper import PORTS_EACH
from ports import free_ports
from zookeepers import RunningZooKeeper

TICK_MS = 200
"""Sessions last from 0.4 to 4 seconds."""

TIMEOUT_S = 4.0
WAIT_S = 15.0


class Server(NamedTuple):
    kind: str
    address: str

    def four_letter_word(self, word: str) -> str:
        host, _, port = self.address.rpartition(":")
        with socket.create_connection((host, int(port)), WAIT_S) as connection:
            connection.sendall(word.encode())
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with CoordinatorProcess(tmp_path_factory.mktemp("embedded") / "data", tick_ms=TICK_MS) as process:
        yield Server("embedded", process.address)


@pytest.fixture(scope="session")
def apache_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    try:
        zookeeper = RunningZooKeeper(
            tmp_path_factory.mktemp("zookeeper"), port=free_ports(PORTS_EACH), tick_ms=TICK_MS
        )
    except ZooKeeperUnavailable as reason:
        pytest.skip(str(reason))
    with zookeeper:
        yield Server("zookeeper", zookeeper.address)


@pytest.fixture(params=["embedded", "apache_zookeeper"])
def server(request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def namespace(server: Server) -> str:
    """A part of the tree for one test alone."""
    path = f"/test-{uuid.uuid4().hex}"
    client = KazooClient(server.address, timeout=TIMEOUT_S)
    client.start(WAIT_S)
    client.create(path)
    client.stop()
    client.close()
    return path


Connect = Callable[..., Any]


@pytest.fixture
def connect(server: Server, namespace: str) -> Iterator[Connect]:
    """Makes started clients whose root is the test's namespace; they are stopped after the test."""
    clients = []

    def make(**options: Any) -> Any:
        client = KazooClient(server.address + namespace, **{"timeout": TIMEOUT_S} | options)
        clients.append(client)
        client.start(WAIT_S)
        return client

    yield make
    for client in clients:
        client.stop()
        client.close()


@pytest.fixture
def zk(connect: Connect) -> Any:
    return connect()


Dial = Callable[[], Wire]


@pytest.fixture
def dial(server: Server) -> Iterator[Dial]:
    """Makes clients by hand, not yet connected; they are closed after the test."""
    wires = []

    def make() -> Wire:
        wires.append(Wire(server.address))
        return wires[-1]

    yield make
    for wire in wires:
        wire.close()


class RemoteClient:
    """A kazoo client in a process of its own, which tests stop and kill. It has made `/remote`."""

    CODE = """
import sys
from kazoo.client import KazooClient
client = KazooClient(sys.argv[1], timeout=float(sys.argv[2]))
client.start()
client.create("/remote", b"", ephemeral=True)
print("made", flush=True)
sys.stdin.read()
"""

    def __init__(self, hosts: str, timeout_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", self.CODE, hosts, str(timeout_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "made\n"

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def remote_client(server: Server, namespace: str) -> Iterator[Callable[[float], RemoteClient]]:
    clients = []

    def make(timeout_s: float) -> RemoteClient:
        clients.append(RemoteClient(server.address + namespace, timeout_s))
        return clients[-1]

    yield make
    for client in clients:
        client.end()


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "coordinator"


def wait_until(condition: Callable[[], object], timeout_s: float = WAIT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


@pytest.fixture(
    scope="session", params=[secured_coordinator, secured_zookeeper], ids=["embedded", "zookeeper"]
)
def secured_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredServer]:
    """A server that requires a credential, with TLS at a second port; tests have znodes of their own."""
    try:
        with request.param(tmp_path_factory.mktemp("secured")) as running:
            yield running
    except ZooKeeperUnavailable as reason:
        pytest.skip(str(reason))
