"""A cluster on one machine as processes: a coordinator or ZooKeeper, and brokers, restarted if they die."""

import logging
from contextlib import ExitStack
from typing import Final

from headrace.broker.settings.config import BrokerConfig
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


async def serve(layout: Layout, hold: int, ready: Readiness) -> None:
    """Start everything, report when clients can connect, and supervise it until it is cancelled.

    The processes inherit the descriptor `hold`, which locks the data directory.
    """
    directory = layout.directory
    to_file = logging.FileHandler(directory.log("up"))
    to_file.setFormatter(log_formatter())
    logging.getLogger().addHandler(to_file)
    logger.info("logs are in %s, warnings appear here as well", directory.logs)
    before = directory.brokers()
    new = [str(number) for number in range(1, layout.brokers + 1) if number not in before]
    if before and new:
        logger.info(
            "new and empty: broker %s. Existing partitions stay where they are until `headrace cluster "
            "reassign` moves them",
            ", ".join(new),
        )
    with ExitStack() as stack:
        ports = stack.enter_context(reserved(layout.host, layout.port, layout.brokers))
        zookeeper, coordination = _coordination(layout, hold, stack)
        http = stack.enter_context(layout.http_socket(ports))
        brokers: list[Member] = []
        for number, port in enumerate(ports, start=1):
            config = layout.advertising(BrokerConfig.of(layout.broker(number, port, zookeeper)), http)
            name = f"broker-{number}"
            brokers.append(
                Service(name, directory.log(name), (hold,), service="broker", settings=config.given)
            )
        bootstrap = ",".join(written(reachable(layout.host), port) for port in ports)
        supervisor = Supervisor([coordination, brokers])
        try:
            if layout.zookeeper == EMBEDDED and not layout.needs_zookeeper_first:
                await supervisor.start([*coordination, *brokers])  # the coordinator is ready before them
            else:
                await supervisor.start(coordination)
                await layout.prepare_zookeeper(zookeeper)
                await supervisor.start(brokers)
            layout.prepare_clients(bootstrap)
            log, options = directory.log("gateway"), layout.gateway
            async with on_demand(http, bootstrap, log=log, holds=[hold], options=options) as addresses:
                layout.report_ready(ready, addresses)
                await supervisor.watch()
        finally:
            await supervisor.stop()


def _coordination(layout: Layout, hold: int, stack: ExitStack) -> tuple[str, list[Member]]:
    """Return the address of the coordination service, and its processes if we run it."""
    directory = layout.directory
    if layout.zookeeper == EMBEDDED:
        (port,) = stack.enter_context(reserved(LOOPBACK, 0, 1))
        settings = {
            "data": str(directory.coordinator),
            "port": port,
            "credentials": str(ensure_file(directory.credentials)),
            "first": False,
        }
        name, log = "coordinator", directory.log("coordinator")
        coordinator = Service(name, log, (hold,), service=name, settings=settings, first={"first": True})
        return f"{LOOPBACK}:{port}", [coordinator]
    if layout.zookeeper == ENSEMBLE:
        ports = stack.enter_context(reserved(LOOPBACK, 0, PORTS_EACH * ZOOKEEPER_SERVERS))
        ensemble = ZooKeeper(
            directory.zookeeper,
            servers=ZOOKEEPER_SERVERS,
            host=LOOPBACK,
            port=ports,
            credentials=ensure_file(directory.credentials),
        )
        return ensemble.address, [
            zookeeper_process(number, server, directory.log(f"zookeeper-{number}"), (hold,))
            for number, server in enumerate(ensemble.servers, start=1)
        ]
    return layout.zookeeper, []
