"""The embedded coordinator and Apache ZooKeeper with users and TLS, by the same files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordination.processes import CoordinatorProcess
from headrace.coordination.client_security import ClientSecurity
from headrace.coordination.credentials import Credential
from headrace.coordination.zookeeper import PORTS_EACH
from headrace.security.tls import TlsSettings
from ports import free_ports
from support.certificates import Authority
from zookeepers import RunningZooKeeper

HOSTS: Final = ("127.0.0.1", "localhost")
TICK_MS: Final = 500
ANN: Final = Credential("ann", 'pass"word')
BOB: Final = Credential("bob", "inside")
JAAS: Final = """
Server { org.apache.zookeeper.server.auth.DigestLoginModule required
    user_ann="pass\\"word" user_bob="inside"; };
Client { org.apache.zookeeper.server.auth.DigestLoginModule required
    username="ann" password="pass\\"word"; };
"""


@dataclass(frozen=True)
class SecuredServer:
    """A server whose clients have to authenticate, without TLS at `address` and with TLS at `tls_address`."""

    kind: str
    address: str
    tls_address: str
    files: Path  # jaas.conf, server.pem, client.pem, trusted.pem

    def security(
        self, credential: Credential | None = ANN, *, tls: bool = False, **more: Any
    ) -> ClientSecurity:
        return ClientSecurity(credential=credential, tls=self.tls() if tls else None, **more)

    def tls(self, trusted: str = "trusted.pem", keystore: str | None = None) -> TlsSettings:
        return TlsSettings.of(
            {
                "ssl.truststore.location": str(self.files / trusted),
                "ssl.keystore.location": None if keystore is None else str(self.files / keystore),
            }
        )


def write_files(root: Path) -> Path:
    """Write certificates and the JAAS file."""
    authority = Authority("zookeeper tests")
    for name in ("server", "client"):
        made = authority.certify(name, HOSTS)
        (root / f"{name}.pem").write_text(made.key + made.certificate)
    (root / "trusted.pem").write_text(authority.certificate)
    (root / "other.pem").write_text(Authority("somebody else").certificate)
    jaas = root / "jaas.conf"
    jaas.write_text(JAAS)
    jaas.chmod(0o600)
    return root


@contextmanager
def secured_coordinator(root: Path) -> Iterator[SecuredServer]:
    """Two coordinators, because one has one port, with TLS or without."""
    files = write_files(root)
    config = files / "coordinator.properties"
    config.write_text(f"ssl.keystore.location={files / 'server.pem'}\n")
    users = f"--credentials={files / 'jaas.conf'}"
    with (
        CoordinatorProcess(root / "plain", tick_ms=TICK_MS, options=(users, "--no-sync")) as plain,
        CoordinatorProcess(
            root / "tls", tick_ms=TICK_MS, options=(users, f"--config={config}", "--no-sync")
        ) as tls,
    ):
        yield SecuredServer("embedded", plain.address, tls.address, files)


@contextmanager
def secured_zookeeper(root: Path, **settings: str) -> Iterator[SecuredServer]:
    """One server with a second port for TLS; `settings` of zoo.cfg have underscores for dots."""
    files = write_files(root)
    *ports, secure_port = free_ports(PORTS_EACH + 1)
    server = RunningZooKeeper(
        root / "data",
        port=ports,
        tick_ms=TICK_MS,
        credentials=files / "jaas.conf",
        settings={
            "secureClientPort": secure_port,
            "serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
            "ssl.keyStore.location": files / "server.pem",
            "ssl.trustStore.location": files / "trusted.pem",
            "ssl.clientAuth": "none",
            **{name.replace("_", "."): value for name, value in settings.items()},
        },
    )
    with server:
        yield SecuredServer("zookeeper", server.address, f"127.0.0.1:{secure_port}", files)
