"""Brokers on a ZooKeeper with TLS, SASL and ACLs, and servers that strangers can reach."""

import asyncio
import socket
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import ACL, Id

from coordination.processes import CoordinatorProcess
from coordination.secured import SecuredServer, secured_zookeeper
from headrace.client.admin.admin import Admin
from headrace.coordination.credentials import Credential
from headrace.coordination.embedded.server import Coordinator
from headrace.coordination.errors import CoordinationError, ZooKeeperUnavailable
from support.process import NotReady, ServerProcess

TIMEOUT_S = 30
ANN = Id("sasl", "ann")
EVERYBODY = Id("world", "anyone")


def broker(server: SecuredServer, root: Path, **more: str) -> ServerProcess:
    settings = {
        "broker.id": "1",
        "log.dirs": str(root / "broker"),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "zookeeper.connect": f"{server.tls_address}/kafka",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": str(server.files / "trusted.pem"),
        "zookeeper.ssl.truststore.type": "PEM",
        "zookeeper.sasl.jaas.file": str(server.files / "jaas.conf"),
        "zookeeper.set.acl": "true",
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    arguments = ["broker", *(f"--set={name}={value}" for name, value in settings.items())]
    return ServerProcess(arguments, root / "broker.log")


def exchange(bootstrap: str) -> list[bytes | None]:
    """Produce three records to a new topic, and consume them in a group."""
    Admin(bootstrap).create_topic("orders")
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(3):
        producer.produce("orders", b"%d" % number)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    found = consumer.consume(3, TIMEOUT_S)
    consumer.close()
    return [each.value() for each in found]


def test_a_broker_on_a_zookeeper_with_tls_sasl_and_acls(tmp_path: Path) -> None:
    try:
        # Without enforce.auth the test can look at what ACLs alone protect.
        running = secured_zookeeper(tmp_path, enforce_auth_enabled="false")
        with running as server, broker(server, tmp_path) as served:
            assert exchange(served.address) == [b"0", b"1", b"2"]
            stranger = KazooClient(f"{server.address}/kafka")
            stranger.start(TIMEOUT_S)
            try:
                assert stranger.get_acls("/brokers/topics/orders")[0] == [ACL(31, ANN), ACL(1, EVERYBODY)]
                assert stranger.get("/brokers/ids/1")[0]
                for method, *arguments in (
                    (stranger.get_children, "/config/users"),
                    (stranger.get_children, "/config/brokers"),
                    (stranger.set, "/brokers/topics/orders", b""),
                    (stranger.delete, "/brokers/ids/1"),
                    (stranger.create, "/brokers/ids/2"),
                ):
                    with pytest.raises(NoAuthError):
                        method(*arguments)
            finally:
                stranger.stop()
                stranger.close()
        assert "pass" not in (tmp_path / "broker.log").read_text()
    except ZooKeeperUnavailable as reason:
        pytest.skip(str(reason))


def test_a_broker_with_a_wrong_password_says_so_and_ends(tmp_path: Path) -> None:
    login = 'module required username="ann" password="guess";'
    with secured_zookeeper(tmp_path) as server:
        served = broker(server, tmp_path, zookeeper_sasl_jaas_file="", zookeeper_sasl_jaas_config=login)
        with pytest.raises(NotReady, match="refuses our credential"), served:
            pass
    assert "guess" not in (tmp_path / "broker.log").read_text()


def own_address() -> str:
    """An address of this machine that is not loopback; no packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return str(probe.getsockname()[0])


def test_off_loopback_a_credential_is_created_and_required(tmp_path: Path) -> None:
    host = own_address()
    data = tmp_path / "coordinator"
    with CoordinatorProcess(data, options=("--host", host, "--no-sync")) as process:
        address = f"{host}:{process.address.rpartition(':')[2]}"
        user = Credential.of_file(data / "jaas.conf")
        assert (data / "jaas.conf").stat().st_mode & 0o777 == 0o600
        assert data.stat().st_mode & 0o777 == 0o700
        client = KazooClient(address, auth_data=[("digest", f"{user.name}:{user.password}")])
        client.start(TIMEOUT_S)
        assert client.get_children("/") == ["zookeeper"]
        assert client.command(b"mntr") == "mntr is not executed because it is not in the whitelist.\n"
        assert "Mode: standalone" in client.command(b"srvr")
        client.stop()
        client.close()
        assert user.password not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert user.password not in Path(f"/proc/{process.pid}/environ").read_text()
        assert user.password not in process.log.read_text()


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::", "192.0.2.7", "example.com"])
def test_off_loopback_a_coordinator_without_a_credential_refuses_to_start(tmp_path: Path, host: str) -> None:
    with pytest.raises(CoordinationError, match=r"must not serve .* without a credential: name a JAAS file"):
        asyncio.run(Coordinator(tmp_path, host, port=0).start())
