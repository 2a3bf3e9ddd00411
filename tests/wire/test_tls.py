"""Listeners with TLS: certificates on both sides, SASL inside, and new certificates without a restart."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cluster.waiting import until
from headrace.client.admin.admin import Admin
from headrace.client.errors import ClientError
from support.certificates import Authority
from wire.certificate_files import Files
from wire.raw import frame_of
from wire.requests import ASK_VERSIONS, fetch_request, fresh_name
from wire.secured import ALICE, LOGIN, SecuredCluster, secured_cluster

TIMEOUT_S: Final = 30


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"), Authority("headrace tests"))


@pytest.fixture(scope="module")
def cluster(files: Files, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    """Brokers show each other their certificates; clients may show one."""
    settings = {
        "listener.security.protocol.map": "INSIDE:SSL,CLIENTS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.write("broker")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.trusted),
        "listener.name.inside.ssl.client.auth": "required",
        "listener.name.clients.ssl.client.auth": "requested",
    }
    with secured_cluster(tmp_path_factory.mktemp("tls"), settings) as made:
        yield made


def write_and_read(settings: dict[str, Any]) -> None:
    """Create a topic with two replicas, and copy records to it and back."""
    topic = fresh_name("tls")
    admin = AdminClient(settings)
    for done in admin.create_topics([NewTopic(topic, 1, 2)]).values():
        done.result(TIMEOUT_S)
    errors: list[Any] = []
    producer = Producer(settings)
    for number in range(20):
        producer.produce(topic, b"%d" % number, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert errors == [None] * 20
    consumer = Consumer(settings | {"group.id": fresh_name("group"), "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes] = []

    def have_all() -> bool:
        values.extend(each.value() for each in consumer.consume(100, 0.1) if each.error() is None)
        return len(values) == 20

    until("all are read", have_all)
    consumer.close()
    assert values == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("name", [None, "alice"], ids=["without a certificate", "with one"])
def test_clients_write_and_read(cluster: SecuredCluster, files: Files, name: str | None) -> None:
    write_and_read(cluster.settings(files.client(name)))


def test_our_own_client_does_too(cluster: SecuredCluster, files: Files) -> None:
    with Admin(cluster.bootstrap, files.client()) as admin:
        admin.create_topic(fresh_name("tls"), partitions=1, replicas=2)


def test_a_certificate_of_a_stranger_is_refused(cluster: SecuredCluster, files: Files) -> None:
    stranger = files.write("stranger", authority=Authority("somebody else"))
    settings = files.client() | {"ssl.certificate.location": str(stranger), "ssl.key.location": str(stranger)}
    with pytest.raises(ClientError, match=r"does not trust our certificate|closed the connection"):
        Admin(cluster.bootstrap, settings).list_topics()


def handshake(address: str, context: ssl.SSLContext) -> dict[str, Any]:
    """The certificate that a listener shows, and the version of TLS."""
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=host) as secured,
    ):
        return dict(secured.getpeercert() or {}) | {"version": secured.version()}


def client_context(files: Files) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(files.trusted))


def test_brokers_require_certificates_of_each_other(cluster: SecuredCluster, files: Files) -> None:
    inside = cluster.brokers[0].address.split(",")[0]
    with pytest.raises(ClientError, match=r"wants a certificate of ours|closed the connection"):
        Admin(inside, files.client()).list_topics()


def test_a_client_that_ends_tls_gets_what_is_ready_and_nothing_is_logged(
    cluster: SecuredCluster, files: Files
) -> None:
    """The requests and the close_notify arrive together, while a Fetch waits for records that never come."""
    topic = fresh_name("ended")
    with Admin(cluster.bootstrap, files.client()) as admin:
        admin.create_topic(topic, partitions=1, replicas=1)
    requests = frame_of(ASK_VERSIONS, 0) + frame_of(fetch_request(topic, max_wait_ms=60_000), 12)

    for address in cluster.bootstrap.split(","):  # one of them is the leader
        answer = ask_and_end_tls(address, client_context(files), requests)
        assert answer[8:10] == bytes(2)  # after the size and the correlation id: no error

    assert "eof_received" not in "".join(each.log.read_text() for each in cluster.brokers)


def ask_and_end_tls(address: str, context: ssl.SSLContext, requests: bytes) -> bytes:
    host, _, port = address.rpartition(":")
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)
    with socket.create_connection((host, int(port)), TIMEOUT_S) as plain:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                plain.sendall(outgoing.read())
                incoming.write(plain.recv(65536))
        tls.write(requests)
        with suppress(ssl.SSLWantReadError):
            tls.unwrap()  # the close_notify
        plain.sendall(outgoing.read())
        while received := plain.recv(65536):
            incoming.write(received)
    return tls.read(65536)


def test_old_versions_of_tls_are_refused(cluster: SecuredCluster, files: Files) -> None:
    context = client_context(files)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert handshake(cluster.bootstrap.split(",")[0], context)["version"] == "TLSv1.2"
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake(cluster.bootstrap.split(",")[0], context)


def test_plain_text_gets_nothing(cluster: SecuredCluster) -> None:
    with pytest.raises(ClientError, match=r"speaks TLS|closed the connection"):
        Admin(cluster.bootstrap).list_topics()


def test_a_new_certificate_is_used_without_a_restart(cluster: SecuredCluster, files: Files) -> None:
    address = cluster.bootstrap.split(",")[0]
    before = handshake(address, client_context(files))["serialNumber"]
    (files.root / "broker.pem").write_text("half a certificate")
    assert handshake(address, client_context(files))["serialNumber"] == before
    files.write("broker")

    until(
        "the new certificate is shown",
        lambda: handshake(address, client_context(files))["serialNumber"] != before,
    )
    write_and_read(cluster.settings(files.client()))


def test_sasl_inside_tls(files: Files, tmp_path: Path) -> None:
    settings = {
        "listener.security.protocol.map": "INSIDE:SASL_SSL,CLIENTS:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files.write("inner")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.trusted),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.jaas.config": LOGIN,
        "ssl.client.auth": "required",  # not on listeners with SASL
    }
    with secured_cluster(tmp_path, settings) as made:
        assert "ssl.client.auth=required has no effect on listener CLIENTS" in made.brokers[0].log.read_text()
        user = ALICE | files.client() | {"security.protocol": "SASL_SSL"}
        write_and_read(made.settings(user))
        with pytest.raises(ClientError, match="invalid credentials"):
            Admin(made.bootstrap, user | {"sasl.password": "wrong"}).list_topics()
