"""A cluster on one machine as processes: a coordinator or ZooKeeper, and brokers that are kept running."""

import logging
import socket
from contextlib import AsyncExitStack, ExitStack
from typing import Final

from headrace.addresses import reachable, written
from headrace.cli.log_format import formatter
from headrace.cli.machine.door import Door, kept
from headrace.cli.machine.layout import EMBEDDED, ENSEMBLE, Layout
from headrace.cli.machine.left_out import refuse_loss
from headrace.cli.machine.process import Member, Service
from headrace.cli.machine.supervisor import Supervisor
from headrace.cli.machine.zookeeper import server_process
from headrace.cli.process import Readiness
from headrace.coordination.zookeeper import PORTS_EACH, Server, ZooKeeper
from headrace.ports import reserved

LOOPBACK: Final = "127.0.0.1"
ZOOKEEPER_SERVERS: Final = 3

logger = logging.getLogger("headrace")


class Cluster:
    """The processes of a layout. `hold` is a file that they have open: so long the directory is theirs."""

    def __init__(self, layout: Layout, hold: int, ready: Readiness) -> None:
        self._layout = layout
        self._ready = ready
        self._directory = layout.directory
        self._hold = hold

    async def serve(self) -> None:
        """Start everything, say so once clients can connect, and keep it running until it is cancelled."""
        layout = self._layout
        self._log_to_file()
        with ExitStack() as stack:
            ports = stack.enter_context(reserved(layout.host, layout.port, layout.brokers))
            zookeeper, coordination = self._coordination(stack)
            self._say_what_is_new()
            brokers = [self._broker(number, port, zookeeper) for number, port in enumerate(ports, start=1)]
            bootstrap = ",".join(written(reachable(layout.host), port) for port in ports)
            http = stack.enter_context(layout.http_socket(ports))
            supervisor = Supervisor([coordination, brokers])
            try:
                await self._start(supervisor, coordination, brokers, zookeeper)
                async with AsyncExitStack() as serving:
                    where = {"bootstrap": bootstrap}
                    if http is not None:
                        door = await serving.enter_async_context(kept(self._door(http, bootstrap)))
                        where["http"] = door.url
                    self._ready.say(**where)
                    await supervisor.watch()
            finally:
                await supervisor.stop()

    async def _start(
        self, supervisor: Supervisor, coordination: list[Member], brokers: list[Member], zookeeper: str
    ) -> None:
        layout = self._layout
        if layout.zookeeper == EMBEDDED and max(self._directory.brokers(), default=0) <= layout.brokers:
            await supervisor.start([*coordination, *brokers])  # it is there before they are
        else:
            await supervisor.start(coordination)
            await refuse_loss(self._directory, layout.brokers, zookeeper)
            await supervisor.start(brokers)

    # -- which processes -----------------------------------------------------------------------

    def _broker(self, broker_id: int, port: int, zookeeper: str) -> Member:
        name = f"broker-{broker_id}"
        return Service(
            name,
            self._directory.log(name),
            (self._hold,),
            module="headrace.cli.machine.broker",
            settings=self._layout.broker(broker_id, port, zookeeper),
        )

    def _door(self, http: socket.socket, bootstrap: str) -> Door:
        log, hosts = self._directory.log("gateway"), self._layout.http_hosts
        return Door(http, bootstrap, log=log, holds=self._hold, hosts=hosts)

    def _coordination(self, stack: ExitStack) -> tuple[str, list[Member]]:
        """Where the brokers find their coordination, and the processes that are it."""
        if self._layout.zookeeper == EMBEDDED:
            (port,) = stack.enter_context(reserved(LOOPBACK, 0, 1))
            return f"{LOOPBACK}:{port}", [self._coordinator(port)]
        if self._layout.zookeeper == ENSEMBLE:
            ports = stack.enter_context(reserved(LOOPBACK, 0, PORTS_EACH * ZOOKEEPER_SERVERS))
            ensemble = ZooKeeper(
                self._directory.zookeeper, servers=ZOOKEEPER_SERVERS, host=LOOPBACK, port=ports
            )
            return ensemble.address, [
                self._zookeeper(number, server) for number, server in enumerate(ensemble.servers, start=1)
            ]
        return self._layout.zookeeper, []

    def _coordinator(self, port: int) -> Member:
        return Service(
            "coordinator",
            self._directory.log("coordinator"),
            (self._hold,),
            module="headrace.cli.machine.coordinator",
            settings={"data": str(self._directory.coordinator), "port": port, "first": False},
            first={"first": True},
        )

    def _zookeeper(self, number: int, server: Server) -> Member:
        return server_process(number, server, self._directory.log(f"zookeeper-{number}"), (self._hold,))

    # -- what is said --------------------------------------------------------------------------

    def _log_to_file(self) -> None:
        to_file = logging.FileHandler(self._directory.log("up"))
        to_file.setFormatter(formatter())
        logging.getLogger().addHandler(to_file)
        logger.info("everything is logged in %s, warnings here as well", self._directory.logs)

    def _say_what_is_new(self) -> None:
        before = self._directory.brokers()
        new = [each for each in range(1, self._layout.brokers + 1) if each not in before]
        if before and new:
            logger.info(
                "new and empty: broker %s. Topics stay where they are until `headrace cluster reassign` "
                "moves them",
                ", ".join(map(str, new)),
            )
