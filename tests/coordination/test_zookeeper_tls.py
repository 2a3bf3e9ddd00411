"""`headrace zookeeper --tls`: clients and the other servers of an ensemble connect with TLS only."""

import asyncio
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from coordination.conftest import wait_until
from coordination.secured import write_files
from coordination.test_commands import run
from headrace.coordination.client_security import ClientSecurity
from headrace.coordination.errors import ZooKeeperUnavailable
from headrace.coordination.session import ZooKeeperSession
from headrace.coordination.zookeeper import find_jars
from headrace.security.tls import TlsSettings
from headrace.system.java import NoJava, find_java
from support.process import ServerProcess

TIMEOUT_MS = 30_000


@pytest.fixture(autouse=True, scope="module")
def has_zookeeper() -> None:
    try:
        find_java("ZooKeeper")
        find_jars()
    except (NoJava, ZooKeeperUnavailable) as reason:
        pytest.skip(str(reason))


@contextmanager
def zookeeper(root: Path, *options: str) -> Iterator[ServerProcess]:
    arguments = ["zookeeper", f"--data={root / 'zookeeper'}", "--port=0", "--tls", *options]
    with ServerProcess(arguments, root / "zookeeper.log") as process:
        yield process


async def write_and_read(address: str, trusted: Path) -> bytes:
    tls = TlsSettings.of({"ssl.truststore.type": "PEM", "ssl.truststore.location": str(trusted)})
    session = await ZooKeeperSession.connect(
        address,
        session_timeout_ms=TIMEOUT_MS,
        connect_timeout_ms=TIMEOUT_MS,
        security=ClientSecurity(tls=tls),
    )
    try:
        await session.create("/secured", b"by TLS")
        found = await session.get("/secured")
        assert found is not None
        return found.data
    finally:
        await session.close()


def answers_without_tls(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(b"srvr" + bytes(20))  # more than the head of a record of TLS
        try:
            return b"Zookeeper" in connection.recv(1000)
        except ConnectionResetError:
            return False


def test_a_broker_uses_a_server_with_the_certificate_that_was_made(tmp_path: Path) -> None:
    ca = tmp_path / "zookeeper" / "certs" / "ca.pem"
    with zookeeper(tmp_path) as server:
        assert not answers_without_tls(server.address)
        assert stat.S_IMODE(ca.with_name("zookeeper.pem").stat().st_mode) == 0o600
        settings = {
            "broker.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "broker"),
            "zookeeper.connect": server.address,
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.ssl.truststore.type": "PEM",
            "zookeeper.ssl.truststore.location": str(ca),
        }
        given = [f"--set={name}={value}" for name, value in settings.items()]
        with ServerProcess(["broker", *given], tmp_path / "broker.log") as broker:
            producer = Producer({"bootstrap.servers": broker.address})
            producer.produce("orders", b"tea")
            assert producer.flush(60) == 0


def test_the_servers_of_an_ensemble_find_each_other_with_given_certificates(tmp_path: Path) -> None:
    files = write_files(tmp_path)
    trusted = files / "trusted.pem"
    options = ["--servers=3", f"--keystore={files / 'server.pem'}", f"--truststore={trusted}"]
    with zookeeper(tmp_path, *options) as ensemble:
        assert not (tmp_path / "zookeeper" / "certs").exists()
        assert not any(map(answers_without_tls, ensemble.address.split(",")))
        assert asyncio.run(write_and_read(ensemble.address, trusted)) == b"by TLS"
        logs = [tmp_path / "zookeeper" / str(number) / "zookeeper.log" for number in (1, 2, 3)]
        wait_until(lambda: all("Using TLS encrypted quorum" in each.read_text() for each in logs))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--keystore"], "Give both --keystore and --truststore"),
        (["--keystore", "--truststore"], "--keystore and --truststore need --tls"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, options: list[str], complaint: str
) -> None:
    files = write_files(tmp_path)
    given = [f"{each}={files / 'server.pem'}" for each in options]
    refused = run("zookeeper", "--data", str(tmp_path / "data"), *given)

    assert refused.returncode == 2
    assert complaint in refused.stderr
