"""`headrace zookeeper secure` and `unsecure`: znodes of a running cluster, on both kinds of servers."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from coordination.secured import ANN, BOB, TICK_MS, SecuredServer
from headrace.client.admin.admin import Admin
from headrace.coordination.client_security import CredentialRefused
from headrace.coordination.credentials import Credential
from headrace.coordination.session import ZooKeeperSession
from support.process import ServerProcess
from wire.requests import fresh_name

TIMEOUT_S = 60
PARTITIONS = 100  # more znodes than one batch has


@pytest.fixture
def server(secured_server: SecuredServer) -> SecuredServer:
    return secured_server


def zookeeper_settings(server: SecuredServer) -> dict[str, str]:
    return {
        "zookeeper.connect": f"{server.address}/kafka",
        "zookeeper.sasl.jaas.file": str(server.files / "jaas.conf"),
    }


def broker(server: SecuredServer, root: Path, *, set_acl: bool) -> ServerProcess:
    settings = zookeeper_settings(server) | {
        "broker.id": "1",
        "log.dirs": str(root / "broker"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "zookeeper.set.acl": str(set_acl).lower(),
    }
    return ServerProcess(
        ["broker", *(f"--set={name}={value}" for name, value in settings.items())], root / "broker.log"
    )


def migrate(verb: str, file: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", "zookeeper", verb, f"--config={file}", "--json", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)


async def _session(server: SecuredServer, user: Credential) -> ZooKeeperSession:
    return await ZooKeeperSession.connect(
        f"{server.address}/kafka",
        session_timeout_ms=20 * TICK_MS,
        connect_timeout_ms=20_000,
        security=server.security(user),
    )


def may(server: SecuredServer, user: Credential, topic: str) -> dict[str, bool]:
    """Return what a user of ZooKeeper may do with znodes of the brokers, and with another one."""

    async def attempts() -> dict[str, bool]:
        session = await _session(server, user)
        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "read a topic": lambda: session.get(f"/brokers/topics/{topic}"),
            "create a topic": lambda: session.create(f"/brokers/topics/{topic}/x", b""),
            "change a partition": lambda: session.create(
                f"/brokers/topics/{topic}/partitions/{PARTITIONS - 1}/x", b""
            ),
            "read credentials": lambda: session.children("/config/users"),
            "change another znode": lambda: session.set("/other", b""),
        }
        found = {}
        try:
            for name, call in calls.items():
                try:
                    result = await call()
                    found[name] = True
                    if name.startswith(("create", "change a p")):
                        await session.delete(str(result))
                except CredentialRefused:
                    found[name] = False
        finally:
            await session.close()
        return found

    return asyncio.run(attempts())


def make_other_znode(server: SecuredServer) -> None:
    async def make() -> None:
        session = await _session(server, ANN)
        await session.ensure("/other")
        await session.close()

    asyncio.run(make())


def test_existing_znodes_are_secured_and_opened_again(server: SecuredServer, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in zookeeper_settings(server).items()))
    topic = fresh_name()
    with broker(server, tmp_path, set_acl=False) as served:
        Admin(served.address).create_topic(topic, partitions=PARTITIONS)
        make_other_znode(server)
        assert all(may(server, BOB, topic).values())

    with broker(server, tmp_path, set_acl=True) as served:
        secured = migrate("secure", file)
        assert secured.returncode == 0, secured.stderr
        assert json.loads(secured.stdout)["znodes"] > 2 * PARTITIONS
        assert may(server, BOB, topic) == {
            "read a topic": True,
            "create a topic": False,
            "change a partition": False,
            "read credentials": False,
            "change another znode": True,
        }
        assert all(may(server, ANN, topic).values())
        Admin(served.address).delete_topic(topic)
        Admin(served.address).create_topic(topic, partitions=PARTITIONS)

        as_bob = 'zookeeper.sasl.jaas.config=m required username="bob" password="inside";'
        unasked = migrate("unsecure", file)
        assert (
            "Confirmation needs a terminal: give --yes to open the znodes" in unasked.stderr + unasked.stdout
        )
        refused = migrate("unsecure", file, "--yes", "--set=zookeeper.sasl.jaas.file=", f"--set={as_bob}")
        assert refused.returncode == 1
        assert "NOAUTH" in refused.stderr + refused.stdout

    opened = migrate("unsecure", file, "--yes")
    assert opened.returncode == 0, opened.stderr
    assert all(may(server, BOB, topic).values())


def test_a_path_without_znodes_of_brokers_is_named(server: SecuredServer, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    settings = zookeeper_settings(server) | {"zookeeper.connect": f"{server.address}/nowhere"}
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    found = migrate("secure", file)

    assert found.returncode == 1
    assert "/nowhere: there are no znodes of brokers" in found.stderr + found.stdout
