"""A cluster on one machine as processes: a coordinator or ZooKeeper, and brokers, restarted if they die."""

import logging
import socket
from contextlib import ExitStack
from typing import Final

from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.directory import check_left_out_brokers
from headrace.cli.machine.gateway import on_demand
from headrace.cli.machine.layout import EMBEDDED, ENSEMBLE, Layout
from headrace.cli.machine.process import Member, Service, zookeeper_process
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.support.process import Readiness, log_formatter
from headrace.coordination.credentials import ensure_file
from headrace.coordination.zookeeper import PORTS_EACH, ZooKeeper
from headrace.system.addresses import reachable, written
from headrace.system.ports import reserved

LOOPBACK: Final = "127.0.0.1"
ZOOKEEPER_SERVERS: Final = 3

logger = logging.getLogger("headrace")


class Cluster:
    """The processes of a layout; they inherit the descriptor `hold`, which locks the data directory."""

    def __init__(self, layout: Layout, hold: int, ready: Readiness) -> None:
        self._layout = layout
        self._ready = ready
        self._directory = layout.directory
        self._hold = hold

    async def serve(self) -> None:
        """Start everything, report when clients can connect, and supervise it until it is cancelled."""
        layout = self._layout
        to_file = logging.FileHandler(self._directory.log("up"))
        to_file.setFormatter(log_formatter())
        logging.getLogger().addHandler(to_file)
        logger.info("logs are in %s, warnings appear here as well", self._directory.logs)
        with ExitStack() as stack:
            ports = stack.enter_context(reserved(layout.host, layout.port, layout.brokers))
            zookeeper, coordination = self._coordination(stack)
            before = self._directory.brokers()
            new = [str(number) for number in range(1, layout.brokers + 1) if number not in before]
            if before and new:
                logger.info(
                    "new and empty: broker %s. Existing partitions stay where they are until `headrace "
                    "cluster reassign` moves them",
                    ", ".join(new),
                )
            http = stack.enter_context(layout.http_socket(ports))
            brokers = [
                self._broker(number, port, zookeeper, http) for number, port in enumerate(ports, start=1)
            ]
            bootstrap = ",".join(written(reachable(layout.host), port) for port in ports)
            supervisor = Supervisor([coordination, brokers])
            try:
                await self._start(supervisor, coordination, brokers, zookeeper)
                layout.prepare_clients(bootstrap)
                log, options = self._directory.log("gateway"), layout.gateway
                gateway = on_demand(http, bootstrap, log=log, holds=[self._hold], options=options)
                async with gateway as addresses:
                    layout.report_ready(self._ready, addresses)
                    await supervisor.watch()
            finally:
                await supervisor.stop()

    async def _start(
        self, supervisor: Supervisor, coordination: list[Member], brokers: list[Member], zookeeper: str
    ) -> None:
        layout = self._layout
        if (
            layout.secure is None
            and layout.zookeeper == EMBEDDED
            and max(self._directory.brokers(), default=0) <= layout.brokers
        ):
            await supervisor.start([*coordination, *brokers])  # the coordinator is ready before the brokers
        else:
            await supervisor.start(coordination)
            config = BrokerConfig.of(layout.broker(1, layout.port, zookeeper))
            await check_left_out_brokers(self._directory, layout.brokers, config)
            await layout.prepare_users(config)
            await supervisor.start(brokers)

    # -- the processes -------------------------------------------------------------------------

    def _service(
        self, name: str, service: str, settings: dict[str, object], first: dict[str, object] | None = None
    ) -> Member:
        log = self._directory.log(name)
        return Service(name, log, (self._hold,), service=service, settings=settings, first=first)

    def _broker(self, broker_id: int, port: int, zookeeper: str, http: socket.socket | None) -> Member:
        config = BrokerConfig.of(self._layout.broker(broker_id, port, zookeeper))
        settings = self._layout.advertising(config, http).given
        return self._service(f"broker-{broker_id}", "broker", {**settings})

    def _coordination(self, stack: ExitStack) -> tuple[str, list[Member]]:
        """Return the address of the coordination service, and its processes if we run it."""
        if self._layout.zookeeper == EMBEDDED:
            (port,) = stack.enter_context(reserved(LOOPBACK, 0, 1))
            settings = {
                "data": str(self._directory.coordinator),
                "port": port,
                "credentials": str(ensure_file(self._directory.credentials)),
                "first": False,
            }
            coordinator = self._service("coordinator", "coordinator", settings, first={"first": True})
            return f"{LOOPBACK}:{port}", [coordinator]
        if self._layout.zookeeper == ENSEMBLE:
            ports = stack.enter_context(reserved(LOOPBACK, 0, PORTS_EACH * ZOOKEEPER_SERVERS))
            ensemble = ZooKeeper(
                self._directory.zookeeper,
                servers=ZOOKEEPER_SERVERS,
                host=LOOPBACK,
                port=ports,
                credentials=ensure_file(self._directory.credentials),
            )
            return ensemble.address, [
                zookeeper_process(number, server, self._directory.log(f"zookeeper-{number}"), (self._hold,))
                for number, server in enumerate(ensemble.servers, start=1)
            ]
        return self._layout.zookeeper, []
