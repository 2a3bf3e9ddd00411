"""Apache ZooKeeper, from the jar in the pyspark wheel: the commands of one server, or of an ensemble.

All servers run on this machine: that shows how an ensemble behaves, but only servers on separate machines
survive the loss of one.
"""

import contextlib
import importlib.util
import os
import shlex
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from headrace.coordination.errors import CoordinationError, ZooKeeperUnavailable
from headrace.system.addresses import is_loopback
from headrace.system.java import NoJava, find_java

MAIN_CLASS: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The jars that the server needs: protocol, logging, metrics, and libraries that its classes refer to.
JARS: Final = ("zookeeper-", "slf4j-api-", "log4j-", "metrics-core-", "netty-", "snappy-java-", "commons-io-")
HEAP: Final = "-Xmx256m"
PORTS_EACH: Final = 3  # for clients, for the quorum, and for the leader election
QUORUM_OFFSET: Final = 707  # 2888 for a client port of 2181, and 3888 for the election: ZooKeeper's usual
ELECTION_OFFSET: Final = 1707
WORD_TIMEOUT_S: Final = 5
POLL_TIMEOUT_S: Final = 0.3  # a starting server accepts connections before it responds
_SASL: Final = {
    "authProvider.sasl": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "enforce.auth.enabled": "true",
    "enforce.auth.schemes": "sasl",
}


_RELOADS: Final = "-Dzookeeper.client.certReload.enabled=true"  # the certificate for clients; its only name


@dataclass(frozen=True, slots=True)
class ServerTls:
    """PEM files for TLS, with clients and among servers: key and certificate, and the CA of the servers."""

    keystore: Path
    truststore: Path

    def settings(self, prefix: str) -> dict[str, object]:
        """Return the settings of zoo.cfg; servers load files that have changed by themselves."""
        return {
            f"{prefix}.keyStore.location": self.keystore.absolute(),
            f"{prefix}.keyStore.type": "PEM",
            f"{prefix}.trustStore.location": self.truststore.absolute(),
            f"{prefix}.trustStore.type": "PEM",
        }


class Ports(NamedTuple):
    client: int
    quorum: int
    election: int


class ZooKeeper:
    """One server, or an odd number of servers; `address` is for clients."""

    def __init__(
        self,
        data_dir: Path,
        *,
        servers: int = 1,
        host: str = "127.0.0.1",
        port: int | Sequence[int] = 2181,
        tick_ms: int = 2000,
        java_options: Sequence[str] = (),
        credentials: Path | None = None,
        tls: ServerTls | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """`port` is the first server's, the others follow; or a list, PORTS_EACH for each server.

        `credentials` is a JAAS file: every client then has to authenticate as one of its users. With `tls`,
        no port accepts connections without TLS. `settings` are further ones of zoo.cfg.

        To use free ports, reserve them first: see `headrace.system.ports`.
        """
        if servers < 1:
            raise CoordinationError(f"an ensemble of {servers} servers: there must be at least one")
        if servers % 2 == 0:
            raise CoordinationError(
                f"an ensemble of {servers} servers: the number must be odd. A majority has to be up, so "
                f"{servers} servers survive no more failures than {servers - 1} do"
            )
        jars = find_jars()
        try:
            java = find_java("ZooKeeper")
        except NoJava as error:
            raise ZooKeeperUnavailable(str(error)) from error
        more = dict(settings or {})
        if credentials is not None:
            java_options = (*java_options, f"-Djava.security.auth.login.config={credentials.absolute()}")
            more = _SASL | more
        if tls is not None:
            java_options = (*java_options, _RELOADS)
        command = [str(java), HEAP, *java_options, "-cp", os.pathsep.join(map(str, jars))]
        if not isinstance(port, int):
            ports = [Ports(*port[first : first + PORTS_EACH]) for first in range(0, len(port), PORTS_EACH)]
        elif servers > 1 and port + ELECTION_OFFSET + servers > 65535:
            raise CoordinationError(f"port {port} leaves no room for the ensemble's other ports above it")
        else:
            numbers = range(port, port + servers)
            ports = [Ports(each, each + QUORUM_OFFSET, each + ELECTION_OFFSET) for each in numbers]
        self.servers = [
            Server(
                command,
                data_dir / str(number),
                number,
                host=host,
                ports=ports,
                tick_ms=tick_ms,
                tls=tls,
                more=more,
            )
            for number in range(1, servers + 1)
        ]

    @property
    def address(self) -> str:
        return ",".join(server.address for server in self.servers)


class Server:
    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        number: int,
        *,
        host: str,
        ports: Sequence[Ports],
        tick_ms: int,
        tls: ServerTls | None = None,
        more: Mapping[str, object] | None = None,
    ) -> None:
        self._command = command
        self._directory = directory
        self._host, self._port = host, ports[number - 1].client
        self._number = number
        self._uses_tls = tls is not None
        port_name = "clientPort" if tls is None else "secureClientPort"
        self._settings: dict[str, object] = {
            "dataDir": directory / "data",
            port_name: self._port,
            f"{port_name}Address": host,
            "tickTime": tick_ms,
            "4lw.commands.whitelist": "*" if is_loopback(host) else "srvr,ruok",
            "admin.enableServer": "false",  # it needs jetty, and another port
            "maxClientCnxns": 0,
            "autopurge.purgeInterval": 1,
        }
        if tls is not None:
            self._settings["serverCnxnFactory"] = "org.apache.zookeeper.server.NettyServerCnxnFactory"
            self._settings["ssl.clientAuth"] = "none"  # clients authenticate by SASL
            self._settings |= tls.settings("ssl")
        if len(ports) > 1:
            self._settings |= {"initLimit": 10, "syncLimit": 5, "standaloneEnabled": "false"}
            for other, (_client, quorum, election) in enumerate(ports, 1):
                self._settings[f"server.{other}"] = f"{host}:{quorum}:{election}"
            if tls is not None:
                self._settings |= {"sslQuorum": "true", "sslQuorumReloadCertFiles": "true"}
                self._settings |= tls.settings("ssl.quorum")
        self._settings |= more or {}
        self.log = directory / "zookeeper.log"
        self.address = f"{host}:{self._port}"

    def prepare(self) -> list[str]:
        """Write the configuration, and return the command that runs the server."""
        data = self._directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{self._number}\n")
        config = self._directory / "zoo.cfg"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._settings.items()))
        log_config = self._directory / "log4j2.properties"
        log_config.write_text(LOG_CONFIG)
        options = [f"-Dlog4j2.configurationFile={log_config}", "-Djava.awt.headless=true"]
        # As in ZooKeeper's own scripts; the last -Xmx wins.
        more = shlex.split(os.environ.get("SERVER_JVMFLAGS", ""))
        return [*self._command[:1], *options, *self._command[1:], *more, MAIN_CLASS, str(config)]

    def serves(self) -> bool:
        """Return whether the server is running and part of a majority."""
        return "Mode:" in self.four_letter_word("srvr", POLL_TIMEOUT_S)

    def four_letter_word(self, word: str, timeout_s: float = WORD_TIMEOUT_S) -> str:
        """Return the server's response to `ruok`, `srvr` and the like; empty if there is none."""
        try:
            with contextlib.ExitStack() as stack:
                connection = stack.enter_context(
                    socket.create_connection((self._host, self._port), timeout_s)
                )
                if self._uses_tls:
                    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
                    context.check_hostname = False  # the process is our own, and no secret is sent to it
                    context.verify_mode = ssl.CERT_NONE
                    connection = stack.enter_context(context.wrap_socket(connection))
                connection.sendall(word.encode())
                return b"".join(iter(lambda: connection.recv(65536), b"")).decode()
        except OSError:
            return ""


def find_jars() -> list[Path]:
    """Return ZooKeeper's jar and its dependencies from the installed pyspark."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ZooKeeperUnavailable(
            "ZooKeeper's jar comes with pyspark, which is not installed: pip install 'headrace[spark]'"
        )
    directory = Path(found.origin).parent / "jars"
    jars = sorted(path for path in directory.glob("*.jar") if path.name.startswith(JARS))
    if not any(path.name.startswith("zookeeper-") for path in jars):
        raise ZooKeeperUnavailable(f"{directory} has no zookeeper-*.jar: pip install 'pyspark>=4.3,<4.4'")
    return jars


LOG_CONFIG: Final = """\
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p %c{1} %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""
