"""An open cluster becomes a secured one, as docs/security.md says, while clients write and read."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from cluster.waiting import until
from ports import free_port
from support.certificates import Authority
from support.process import ServerProcess

BROKERS: Final = (1, 2, 3)
TOPIC: Final = "orders"
PASSWORD: Final = "wonderland"
QUIET: Final = {"log_level": 0, "reconnect.backoff.max.ms": 100}


class Migrated:
    """Three brokers, whose settings change from restart to restart."""

    def __init__(self, root: Path, stack: ExitStack) -> None:
        authority = Authority("cluster")
        self.ca = root / "ca.pem"
        self.ca.write_text(authority.certificate)
        data = f"--data={root / 'coordinator'}"
        coordinator = ServerProcess(["coordinator", data, "--port=0", "--no-sync"], root / "coordinator.log")
        stack.enter_context(coordinator)
        self._ports = {(kind, each): free_port() for kind in ("OPEN", "USERS", "INSIDE") for each in BROKERS}
        self._root = root
        self._zookeeper = coordinator.address
        for each in BROKERS:
            made = authority.certify(f"broker-{each}", ["127.0.0.1", "localhost"])
            (root / f"broker-{each}.pem").write_text(made.key + made.certificate)
        self.brokers = {each: self._process(each, self._settings(("OPEN",))) for each in BROKERS}
        for broker in self.brokers.values():
            stack.enter_context(broker)

    def address(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{self._ports[listener, each]}" for each in BROKERS)

    def restart_each(self, listeners: tuple[str, ...], client: dict[str, Any], **more: str) -> None:
        """Give every broker other settings, one after the other; all replicas are in sync in between."""
        settings = self._settings(listeners) | {key.replace("_", "."): text for key, text in more.items()}
        for each in BROKERS:
            self.brokers[each].stop()
            self.brokers[each].arguments = self._process(each, settings).arguments
            self.brokers[each].start()
            until("all replicas are in sync", partial(_is_in_sync, AdminClient(client)))

    @property
    def anybody(self) -> dict[str, Any]:
        """The settings of a client of the open listener."""
        return {"bootstrap.servers": self.address("OPEN"), **QUIET}

    @property
    def alice(self) -> dict[str, Any]:
        """The settings of a client with a password."""
        return {
            "bootstrap.servers": self.address("USERS"),
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
            "ssl.ca.location": str(self.ca),
            **QUIET,
        }

    def _settings(self, listeners: tuple[str, ...]) -> dict[str, str]:
        return {
            "listeners": ",".join(f"{kind}://127.0.0.1:{{{kind}}}" for kind in listeners),
            "listener.security.protocol.map": "OPEN:PLAINTEXT,USERS:SASL_SSL,INSIDE:SSL",
            "inter.broker.listener.name": "OPEN",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "ssl.keystore.type": "PEM",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
            "listener.name.inside.ssl.client.auth": "required",
            "default.replication.factor": "3",
            "offsets.topic.replication.factor": "3",
            "min.insync.replicas": "2",
            "group.initial.rebalance.delay.ms": "0",
        }

    def _process(self, broker_id: int, settings: Mapping[str, str]) -> ServerProcess:
        ports = {kind: str(port) for (kind, each), port in self._ports.items() if each == broker_id}
        listeners = settings["listeners"]
        for kind, port in ports.items():
            listeners = listeners.replace(f"{{{kind}}}", port)
        given = {
            "broker.id": str(broker_id),
            "log.dirs": str(self._root / f"broker-{broker_id}"),
            "zookeeper.connect": self._zookeeper,
            "ssl.keystore.location": str(self._root / f"broker-{broker_id}.pem"),
            **settings,
            "listeners": listeners,
        }
        sets = [f"--set={name}={value}" for name, value in given.items()]
        return ServerProcess(["broker", *sets], self._root / f"broker-{broker_id}.log")


def _is_in_sync(admin: AdminClient) -> bool:
    topics = admin.list_topics(timeout=20).topics.values()
    partitions = [each for topic in topics for each in topic.partitions.values()]
    return bool(partitions) and all(len(each.isrs) == len(BROKERS) for each in partitions)


class Clients:
    """Writes records, with the settings of the day, and reads them all in the end."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, settings: dict[str, Any]) -> None:
        producer = Producer({**settings, "acks": "all"})
        errors: list[Any] = []
        for _ in range(20):
            value = b"%d" % len(self.written)
            self.written.append(value)
            producer.produce(TOPIC, value, on_delivery=lambda error, _: errors.append(error))
        producer.flush(60)
        assert errors == [None] * 20

    def read(self, settings: dict[str, Any]) -> list[bytes]:
        consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe([TOPIC])
        values: list[bytes] = []

        def has_all() -> bool:
            values.extend(each.value() for each in consumer.consume(100, 1) if not each.error())
            return len(values) >= len(self.written)

        until("all records are read", has_all)
        consumer.close()
        return values


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Migrated]:
    with ExitStack() as stack:
        yield Migrated(tmp_path, stack)


@pytest.mark.long
def test_a_running_cluster_is_secured_step_by_step(cluster: Migrated) -> None:
    clients = Clients()
    admin = AdminClient(cluster.anybody)
    admin.create_topics([NewTopic(TOPIC, 3, 3)])[TOPIC].result(30)
    clients.write(cluster.anybody)

    cluster.restart_each(("OPEN", "USERS"), cluster.anybody)
    clients.write(cluster.anybody)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    user = UserScramCredentialUpsertion("alice", info, PASSWORD.encode())
    admin.alter_user_scram_credentials([user])["alice"].result(30)
    clients.write(cluster.alice)

    principals = ";".join(f"User:CN=broker-{each}" for each in BROKERS)
    guarded = {
        "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super_users": f"User:ANONYMOUS;User:alice;{principals}",
    }
    everywhere = ("OPEN", "USERS", "INSIDE")
    cluster.restart_each(everywhere, cluster.alice, **guarded)
    clients.write(cluster.alice)

    guarded["inter_broker_listener_name"] = "INSIDE"
    cluster.restart_each(everywhere, cluster.alice, **guarded)
    clients.write(cluster.alice)

    guarded["super_users"] = f"User:alice;{principals}"
    cluster.restart_each(("USERS", "INSIDE"), cluster.alice, **guarded)
    clients.write(cluster.alice)

    assert sorted(clients.read(cluster.alice)) == sorted(clients.written)
