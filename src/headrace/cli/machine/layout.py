"""The cluster that the options of `headrace up` describe, and the settings of each of its brokers."""

import socket
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import click

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.directory import DataDirectory
from headrace.cli.machine.gateway import GatewayOptions, advertised, listening
from headrace.cli.machine.secure import DECIDED as SECURE_DECIDED
from headrace.cli.machine.secure import SecureCluster
from headrace.cli.support.process import CommandFailed, Readiness

EMBEDDED: Final = "embedded"
ENSEMBLE: Final = "ensemble"

_DECIDED: Final = {
    "broker.id": "brokers are numbered 1, 2, 3 and so on",
    "node.id": "brokers are numbered 1, 2, 3 and so on",
    "log.dirs": "use --data",
    "log.dir": "use --data",
    "listeners": "use --host and --port",
    "zookeeper.connect": "use --zookeeper",
    "http.listener": "use --http-port",
    "headrace.brokers": "use --brokers",
}
"""Settings that follow from the options of `headrace up`, and the options to use instead."""
_DECIDED_FOR_SEVERAL: Final = {
    "advertised.listeners": "brokers cannot share an address",
    "broker.rack": "use --racks",
}
_FOR_ONE_MACHINE: Final = {
    # Long enough for consumers that start together, short enough for one that waits for its first record.
    "group.initial.rebalance.delay.ms": "100",
    "offsets.topic.num.partitions": "10",  # each partition is a directory that every start has to open
}
"""Better defaults than Kafka's for a cluster on one machine; a setting that is given wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A cluster on one machine; `given` are the settings from the command line and the environment."""

    directory: DataDirectory
    brokers: int
    host: str
    port: int
    http: bool
    http_port: int | None  # None: the usual port, or a free one
    zookeeper: str  # EMBEDDED, ENSEMBLE, or the addresses of running servers
    racks: Sequence[str]
    given: Mapping[str, str]
    secure: SecureCluster | None = None

    @property
    def is_one_process(self) -> bool:
        return self.brokers == 1 and self.zookeeper != ENSEMBLE

    @property
    def gateway(self) -> GatewayOptions:
        """How the gateway serves HTTP and connects to the brokers."""
        options = GatewayOptions.of(BrokerConfig.of(self.broker(1, self.port, "")))
        return options if self.secure is None else self.secure.gateway(options, self.given)

    @contextmanager
    def http_socket(self, brokers: Collection[int]) -> Iterator[socket.socket | None]:
        """Yield the gateway's socket, or None with --no-http; `brokers` are ports that it must not take."""
        if not self.http:
            yield None
            return
        if self.http_port in brokers:
            raise CommandFailed(
                f"cannot serve HTTP on port {self.http_port}: a broker has it; choose another port"
            )
        with listening(self.host, self.http_port, brokers) as held:
            yield held

    def advertising(self, config: BrokerConfig, http: socket.socket | None) -> BrokerConfig:
        """Return the settings of a broker with the URL of the gateway."""
        return config if http is None else advertised(config, http, tls=self.gateway.uses_tls)

    def check(self) -> None:
        """Raise CommandFailed or InvalidSetting for the first setting that is not allowed."""
        decided = _DECIDED if self.brokers == 1 else _DECIDED | _DECIDED_FOR_SEVERAL
        if self.secure is not None:
            decided = decided | SECURE_DECIDED
        for name, instead in decided.items():
            if name in self.given:
                raise CommandFailed(f"{name} cannot be set for `headrace up`: {instead}")
        BrokerConfig.of(self.broker(1, self.port, ""))
        if self.http and self.secure is None:  # what secures a gateway is made later, by `prepare`
            self.gateway.check(self.host)

    def broker(self, broker_id: int, port: int, zookeeper: str) -> dict[str, str]:
        """Return the settings of one broker."""
        bound = f"[{self.host}]" if ":" in self.host else self.host
        settings = dict(_FOR_ONE_MACHINE)
        if self.brokers > 1:
            # One broker may die without a loss; min.insync.replicas stays as it is. __consumer_offsets gets
            # up to three replicas by itself, as brokers register.
            settings |= {
                "default.replication.factor": str(min(3, self.brokers)),
                "transaction.state.log.replication.factor": str(min(3, self.brokers)),
                "transaction.state.log.min.isr": "2",
                # Heartbeats do not get lost between processes of one machine.
                "zookeeper.session.timeout.ms": "6000",
            }
        settings |= self.given
        if self.racks:
            settings["broker.rack"] = self.racks[broker_id - 1]
        settings |= {
            "broker.id": str(broker_id),
            "log.dirs": str(self.directory.broker(broker_id)),
            "listeners": f"PLAINTEXT://{bound}:{port}",
            "zookeeper.connect": zookeeper,
        }
        if self.zookeeper in (EMBEDDED, ENSEMBLE):
            settings["zookeeper.sasl.jaas.file"] = str(self.directory.credentials)
        if self.secure is not None:
            settings |= self.secure.broker_settings(broker_id, bound, port, self.given)
        return settings

    @property
    def _left_out(self) -> list[int]:
        """Brokers that have run in the directory, and are not started now."""
        return [broker_id for broker_id in self.directory.brokers() if broker_id > self.brokers]

    @property
    def needs_zookeeper_first(self) -> bool:
        """Whether `prepare_zookeeper` does anything."""
        return self.secure is not None or bool(self._left_out)

    async def prepare_zookeeper(self, address: str) -> None:
        """Check that no broker with replicas is left out, and create the administrator of a secured cluster.

        Brokers start after this.
        """
        if self.needs_zookeeper_first:
            from headrace.cli.machine import zookeeper_state  # noqa: PLC0415  most starts do without

            config = BrokerConfig.of(self.broker(1, self.port, address))
            if self._left_out:
                await zookeeper_state.check_no_replicas(self.directory.path, self._left_out, config)
            if self.secure is not None:
                await zookeeper_state.ensure_administrator(config, self.secure)

    def prepare_clients(self, bootstrap: str) -> None:
        """Write the files with which clients of a secured cluster connect, its gateway among them."""
        if self.secure is not None:
            self.secure.write_client_files(bootstrap)

    def report_ready(self, ready: Readiness, addresses: Mapping[str, str]) -> None:
        """Print the ready line; before it, how to connect to a secured cluster."""
        if self.secure is not None and not ready.as_json:
            for line in self.secure.instructions(addresses):
                click.echo(line, err=True)
        ready.say(**addresses)
