"""The services of `headrace up`, each in a process of its own: broker, coordinator and HTTP gateway.

member.py runs one of them by its name until it is told to stop. Each imports only what it needs.
"""

import asyncio
import logging
import socket
from collections.abc import Mapping
from pathlib import Path

from headrace.cli.machine.member import READY, report
from headrace.cli.process import exempt_from_collections

logger = logging.getLogger("headrace")


class _ToParent(logging.Handler):
    """Sends log records to the parent, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        report(f"{record.levelname} {record.getMessage()}")


def _log_warnings_to_parent() -> None:
    """Make the parent show warnings on its terminal; the log file has everything."""
    logging.getLogger().addHandler(_ToParent(logging.WARNING))


async def broker(**settings: str) -> None:
    from headrace.broker.config import BrokerConfig  # noqa: PLC0415
    from headrace.broker.server import Broker  # noqa: PLC0415

    _log_warnings_to_parent()
    served = Broker(BrokerConfig.of(settings))
    await served.start()
    exempt_from_collections()
    try:
        logger.info("broker %d serves at %s", served.broker_id, served.bootstrap)
        report(f"{READY}bootstrap={served.bootstrap}")
        await asyncio.get_running_loop().create_future()  # until it is cancelled
    finally:
        await served.stop()


async def coordinator(*, data: str, port: int, credentials: str, first: bool) -> None:
    from headrace.coordination.embedded.authentication import Authentication  # noqa: PLC0415
    from headrace.coordination.embedded.server import Coordinator  # noqa: PLC0415

    _log_warnings_to_parent()
    async with Coordinator(
        Path(data), port=port, authentication=Authentication.of_file(Path(credentials))
    ) as served:
        if first:
            served.end_sessions()  # of brokers that ended with an earlier parent
        report(f"{READY}zookeeper={served.address}")
        await served.wait_failed()


async def gateway(
    bootstrap: str, listening: int, properties: Mapping[str, str], client_config: str = ""
) -> None:
    """Serve HTTP on a socket that the parent holds."""
    from headrace.cli.process import exit_within  # noqa: PLC0415
    from headrace.client.wire.connection_settings import ConnectionSettings  # noqa: PLC0415
    from headrace.http.configuration import Configuration  # noqa: PLC0415
    from headrace.http.serving import STOP_S, serve  # noqa: PLC0415
    from headrace.http.sockets import url_of  # noqa: PLC0415

    _log_warnings_to_parent()
    to = (
        ConnectionSettings.load(client_config).at(bootstrap)
        if client_config
        else ConnectionSettings(bootstrap)
    )
    with socket.socket(fileno=listening) as held:
        settings = Configuration(given=properties).settings(to, held.getsockname()[0])
        url = url_of(held, tls=settings.tls is not None)
        logger.info("the gateway serves at %s, for %s", url, bootstrap)
        report(f"{READY}http={url}")
        await exit_within(STOP_S, serve(settings, held))
