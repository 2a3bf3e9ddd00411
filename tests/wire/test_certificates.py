"""Certificates that have expired, do not match, or are replaced while clients and brokers are at work."""

import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Self

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from cluster.waiting import until
from headrace.client.admin.admin import Admin
from headrace.client.errors import ClientError
from support.certificates import Authority
from wire.certificate_files import HOSTS, Files
from wire.requests import fresh_name
from wire.secured import SecuredCluster, secured_cluster

pytestmark = pytest.mark.extended

TIMEOUT_S: Final = 30
SHORT_S: Final = 1  # for a client that gets no answer
KAFKA_PYTHON: Final = """
from kafka import KafkaAdminClient
from kafka.errors import KafkaError
try:
    KafkaAdminClient(**{settings})
except KafkaError:
    print("refused")
else:
    print("connected")
"""
LISTENERS: Final = {"broker": 0, "server": 1}
"""Which listener shows the certificate in a file."""
EXPIRED: Final[dict[str, Any]] = {"ended": timedelta(days=1)}
ELSEWHERE: Final[dict[str, Any]] = {"hosts": ("other.example",)}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, Authority("headrace tests"))


@contextmanager
def running(files: Files, brokers: int) -> Iterator[SecuredCluster]:
    """Brokers whose clients need certificates, each listener with a keystore of its own."""
    files.write("client")
    settings = {
        "listener.security.protocol.map": "INSIDE:SSL,CLIENTS:SSL",
        "ssl.keystore.type": "PEM",
        "listener.name.inside.ssl.keystore.location": str(files.write("broker")),
        "listener.name.clients.ssl.keystore.location": str(files.write("server")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files.trust(files.authority)),
        "ssl.client.auth": "required",
        "replica.lag.time.max.ms": "3000",
    }
    with secured_cluster(files.root, settings, brokers) as cluster:
        yield cluster


def client(files: Files, name: str = "client") -> dict[str, Any]:
    """The settings of librdkafka, with the certificate in NAME.pem."""
    own = str(files.root / f"{name}.pem")
    return {
        "security.protocol": "SSL",
        "ssl.ca.location": str(files.root / "trusted.pem"),
        "ssl.certificate.location": own,
        "ssl.key.location": own,
    }


def list_topics(settings: dict[str, Any], timeout_s: float = TIMEOUT_S) -> None:
    AdminClient(settings | {"log_level": 0}).list_topics(timeout=timeout_s)


def refusals(settings: dict[str, Any]) -> str:
    """What librdkafka says of a connection that is refused."""
    errors: list[KafkaError] = []
    admin = AdminClient(settings | {"error_cb": errors.append, "log_level": 0})

    def is_told() -> bool:
        admin.poll(0.1)
        return any(each.code() in {KafkaError._SSL, KafkaError._TRANSPORT} for each in errors)

    until("the client is refused", is_told)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=SHORT_S)
    return "\n".join(map(str, errors))


def kafka_python(
    cluster: SecuredCluster, files: Files, name: str = "client", timeout_s: float = SHORT_S
) -> str:
    """Whether kafka-python connects, in a process of its own: it leaves sockets open if it does not."""
    own = str(files.root / f"{name}.pem")
    settings = {
        "bootstrap_servers": cluster.bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": str(files.root / "trusted.pem"),
        "ssl_certfile": own,
        "ssl_keyfile": own,
        "bootstrap_timeout_ms": int(timeout_s * 1000),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", KAFKA_PYTHON.format(settings=settings)],
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * TIMEOUT_S,
    )
    assert done.returncode == 0, done
    return done.stdout.strip()


def certificate_of(address: str, files: Files) -> bytes | None:
    """The certificate that a listener shows, whatever is wrong with it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(files.root / "client.pem")
    host, _, port = address.rpartition(":")
    with (
        socket.create_connection((host, int(port)), TIMEOUT_S) as plain,
        context.wrap_socket(plain) as secured,
    ):
        return secured.getpeercert(binary_form=True)


def replace(files: Files, cluster: SecuredCluster, *names: str, **certificate: Any) -> None:
    """Replace keystores, and return once every listener shows its new certificate."""
    addresses = [each for name in names for each in listeners(cluster, LISTENERS[name])]
    before = {each: certificate_of(each, files) for each in addresses}
    for name in names:
        files.write(name, **certificate)
    until(
        f"{' and '.join(names)} are loaded",
        lambda: all(certificate_of(each, files) != old for each, old in before.items()),
    )


def listeners(cluster: SecuredCluster, number: int) -> list[str]:
    return [each.address.split(",")[number] for each in cluster.brokers]


def test_certificates_that_have_expired_or_do_not_match_are_refused(files: Files) -> None:
    with running(files, 1) as cluster:
        (broker,) = cluster.brokers
        good = cluster.settings(client(files))
        list_topics(good)
        assert kafka_python(cluster, files, timeout_s=TIMEOUT_S) == "connected"

        files.write("late", **EXPIRED)  # a client's
        late = cluster.settings(client(files, "late"))
        refusals(late)
        with pytest.raises(ClientError, match=r"does not trust our certificate, ssl\.certificate\.location"):
            Admin(cluster.bootstrap, client(files, "late")).list_topics()
        assert kafka_python(cluster, files, "late") == "refused"
        broker.wait_for_log("the client's certificate is refused: certificate has expired")

        replace(files, cluster, "server", **EXPIRED)  # the server's
        assert "certificate verify failed" in refusals(good)
        with pytest.raises(ClientError, match="cannot be trusted: certificate has expired"):
            Admin(cluster.bootstrap, client(files)).list_topics()
        assert kafka_python(cluster, files) == "refused"

        replace(files, cluster, "server", **ELSEWHERE)  # another host's
        assert "certificate verify failed" in refusals(good)
        with pytest.raises(ClientError, match="connect by a name that it is for"):
            Admin(cluster.bootstrap, client(files)).list_topics()
        assert kafka_python(cluster, files) == "refused"
        list_topics(good | {"ssl.endpoint.identification.algorithm": "none"})

        replace(files, cluster, "server")
        list_topics(good)


@pytest.mark.parametrize(("wrong", "why"), [(ELSEWHERE, "mismatch"), (EXPIRED, "certificate has expired")])
def test_brokers_refuse_each_other_until_the_certificate_is_right(
    files: Files, wrong: dict[str, Any], why: str
) -> None:
    with running(files, 1) as cluster:
        store = files.write("second", **wrong)
        second = cluster.new_broker({"listener.name.inside.ssl.keystore.location": str(store)})
        cluster.running.callback(second.kill)
        second.launch()
        cluster.brokers[0].wait_for_log("TLS with broker 2 has failed")
        assert why in cluster.brokers[0].log.read_text()

        second.kill()

        files.write("second")
        second.start()
        topic = fresh_name("certificates")
        with Admin(cluster.bootstrap, client(files)) as admin:
            admin.create_topic(topic, partitions=1, replicas=2)
            wait_until_in_sync(admin, topic, 2)


def wait_until_in_sync(admin: Admin, topic: str, replicas: int) -> None:
    until(
        f"{replicas} replicas are in sync",
        lambda: len(admin.describe_topic(topic).partitions[0].in_sync) == replicas,
    )


class Load:
    """A producer that never retries, and clients that connect again and again; counts what fails."""

    def __init__(self, cluster: SecuredCluster, files: Files, topic: str) -> None:
        self._cluster, self._files, self._topic = cluster, files, topic
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=each) for each in (self._produce, self._connect)]
        self.failures: list[str] = []
        self.produced = self.connected = 0

    def __enter__(self) -> Self:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join()

    def _produce(self) -> None:
        settings = self._cluster.settings(client(self._files), acks="all", message_send_max_retries=0)
        producer = Producer(settings)
        while not self._stopping.wait(0.01):
            producer.produce(self._topic, b"1", on_delivery=self._delivered)
            producer.poll(0)
        producer.flush(TIMEOUT_S)

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self.produced += 1
        if error is not None:
            self.failures.append(f"produce: {error}")

    def _connect(self) -> None:
        while not self._stopping.wait(0.05):
            for address in listeners(self._cluster, 1):
                try:
                    with closing(Admin(address, client(self._files))) as admin:
                        admin.list_topics()
                    self.connected += 1
                except ClientError as error:
                    self.failures.append(f"connect: {error}")

    def goes_on(self) -> None:
        """Return once both have succeeded some more."""
        produced, connected = self.produced + 20, self.connected + 4
        until("the load goes on", lambda: self.produced > produced and self.connected > connected)


def test_certificates_and_their_authority_are_replaced_without_a_failed_request(files: Files) -> None:
    old, new = files.authority, Authority("the next authority")
    topic = fresh_name("rotation")
    with running(files, 2) as cluster:
        with Admin(cluster.bootstrap, client(files)) as admin:
            admin.create_topic(topic, partitions=2, replicas=2)
        with Load(cluster, files, topic) as load:
            load.goes_on()
            replace(files, cluster, "server", "broker")  # by the same authority
            load.goes_on()

            files.trust(old, new)  # both, until every certificate is replaced
            until("brokers trust the new authority", lambda: trusts(cluster, files, new))
            files.write("client", authority=new)
            load.goes_on()
            replace(files, cluster, "server", "broker", authority=new)
            load.goes_on()

            files.trust(new)
            until("brokers do not trust the old authority", lambda: not trusts(cluster, files, old))
            load.goes_on()

            cluster.add_broker()  # its connections to the others, and theirs to it, are new
            with Admin(cluster.bootstrap, client(files)) as admin:
                admin.create_topic(f"{topic}-3", partitions=1, replicas=3)
                wait_until_in_sync(admin, f"{topic}-3", 3)
            load.goes_on()
        assert load.failures == []
        for each in cluster.brokers:
            assert "TLS with broker" not in each.log.read_text()


def trusts(cluster: SecuredCluster, files: Files, authority: Authority) -> bool:
    """Whether all listeners accept a client of the authority."""
    files.write("probe", authority=authority)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(files.root / "probe.pem")
    return all(_accepts(each, context) for number in (0, 1) for each in listeners(cluster, number))


def _accepts(address: str, context: ssl.SSLContext) -> bool:
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), TIMEOUT_S) as plain:
        try:
            with context.wrap_socket(plain, server_hostname=HOSTS[1]) as secured:
                secured.settimeout(0.5)
                return secured.recv(1) != b""
        except TimeoutError:
            return True  # the broker waits for a request
        except (ssl.SSLError, ConnectionError):
            return False
