"""Both contenders with a TLS listener: the same certificate, the same versions of TLS, the same cipher suite.

A listener without TLS is for topics and their ids; the load goes to the listener with TLS.
"""

import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from compare.clusters import PROGRAM, environment
from compare.drive import Endpoint
from compare.node import Node
from compare.servers import HOST, MakeServer, Server, formatted_kafka, free_port
from compat.kafka_tools.java import find_kafka
from headrace.client.wire.connection import Address
from headrace.security.certificate_directory import CertificateDirectory
from headrace.security.certificates import Usage

SUITE: Final = "TLS_AES_256_GCM_SHA384"  # what OpenSSL and Java both prefer
_HEADRACE: Final = {  # what `headrace up` gives its broker
    "broker.id": "1",
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",
}


@dataclass(frozen=True, slots=True)
class Certificates:
    """A CA, and a certificate of the brokers with a key of the curve P-256, in PEM."""

    authority: Path
    keystore: Path

    @classmethod
    def made_in(cls, path: Path) -> "Certificates":
        directory = CertificateDirectory(path)
        directory.init("compare", datetime.now(UTC))
        directory.issue("broker", Usage.SERVER, datetime.now(UTC), hosts=(HOST,))
        return cls(directory.ca, directory.file("broker"))

    @property
    def broker_settings(self) -> dict[str, str]:
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.keystore),
        }

    def client_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)


def headrace(root: Path, certificates: Certificates, settings: Mapping[str, str] | None = None) -> MakeServer:
    def make() -> Server:
        directory = Path(tempfile.mkdtemp(prefix="headrace-secured-", dir=root))
        zookeeper, port, tls_port = free_port(), free_port(), free_port()
        command = [PROGRAM, "coordinator", f"--data={directory / 'coordinator'}", f"--port={zookeeper}"]
        coordinator = Node(command, directory / "coordinator.log", environment(root))
        every = _HEADRACE | certificates.broker_settings | dict(settings or {})
        every |= {
            "log.dirs": str(directory / "data"),
            "listeners": _listeners(port, tls_port),
            "zookeeper.connect": f"{HOST}:{zookeeper}",
        }
        return Server(
            "headrace",
            [PROGRAM, "broker", *(f"--set={name}={value}" for name, value in every.items())],
            port,
            directory / "server.log",
            environment(root),
            load=_endpoint(tls_port, certificates),
            before=coordinator,
        )

    return make


def kafka(root: Path, certificates: Certificates, settings: Mapping[str, str] | None = None) -> MakeServer:
    java = find_kafka()

    def make() -> Server:
        directory = Path(tempfile.mkdtemp(prefix="kafka-secured-", dir=root))
        port, tls_port = free_port(), free_port()
        every = certificates.broker_settings | dict(settings or {})
        every |= {"listeners": _listeners(port, tls_port)}
        command = formatted_kafka(java, directory, every)
        endpoint = _endpoint(tls_port, certificates)
        return Server("kafka", command, port, directory / "server.log", load=endpoint)

    return make


def check_suite(endpoint: Endpoint) -> None:
    """Raise RuntimeError unless the broker negotiates TLS 1.3 with SUITE."""
    with endpoint.connect() as connected:
        assert isinstance(connected, ssl.SSLSocket), endpoint
        found = connected.cipher()
        if found is None or found[0] != SUITE or connected.version() != "TLSv1.3":
            raise RuntimeError(f"{endpoint.address} negotiated {connected.version()} {found}, not {SUITE}")


def _listeners(port: int, tls_port: int) -> str:
    return f"PLAINTEXT://{HOST}:{port},SSL://{HOST}:{tls_port}"


def _endpoint(tls_port: int, certificates: Certificates) -> Endpoint:
    return Endpoint(Address(HOST, tls_port), certificates.client_context())
