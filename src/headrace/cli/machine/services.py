"""The services of `headrace up` and of a node, each in a process: broker, coordinator and HTTP gateway.

member.py runs one of them by its name until it is told to stop. Each imports only what it needs.
"""

import asyncio
import json
import logging
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from headrace.cli.machine.member import READY, report
from headrace.cli.support.process import exempt_from_collections

_LONGEST_SETTINGS: Final = 4 * 1024 * 1024  # bytes

logger = logging.getLogger("headrace")


class _ToParent(logging.Handler):
    """Sends log records to the parent, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        report(f"{record.levelname} {record.getMessage()}")


def log_warnings_to_parent() -> None:
    """Make the parent show warnings on its terminal; the log file has everything."""
    logging.getLogger().addHandler(_ToParent(logging.WARNING))


async def broker(**settings: str) -> None:
    from headrace.broker.server import Broker  # noqa: PLC0415
    from headrace.broker.settings.config import BrokerConfig  # noqa: PLC0415
    from headrace.broker.settings.setting import InvalidSetting  # noqa: PLC0415

    served = Broker(BrokerConfig.of(settings))
    await served.start()
    exempt_from_collections()
    try:
        logger.info("broker %d serves at %s", served.broker_id, served.bootstrap)
        report(f"{READY}bootstrap={served.bootstrap}")
        # The parent sends changed settings, one line of JSON each, until it closes the pipe.
        reader = asyncio.StreamReader(limit=_LONGEST_SETTINGS)
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async for line in reader:
            try:
                served.reload(BrokerConfig.of(json.loads(line)))
            except InvalidSetting as error:
                logger.error("settings are unchanged: %s", error)  # noqa: TRY400  the message says it all
            else:
                logger.info("settings applied")
        await loop.create_future()  # until it is cancelled
    finally:
        await served.stop()


async def coordinator(*, data: str, port: int, credentials: str, first: bool) -> None:
    from headrace.coordination.embedded.authentication import Authentication  # noqa: PLC0415
    from headrace.coordination.embedded.server import Coordinator  # noqa: PLC0415

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
    from headrace.cli.support.process import exit_within  # noqa: PLC0415
    from headrace.client.wire.connection_settings import ConnectionSettings  # noqa: PLC0415
    from headrace.gateway.configuration import Configuration  # noqa: PLC0415
    from headrace.gateway.listening import url_of  # noqa: PLC0415
    from headrace.gateway.serving import STOP_S, serve  # noqa: PLC0415

    base = ConnectionSettings.load(client_config) if client_config else ConnectionSettings(bootstrap)
    to = base.at(bootstrap)
    with socket.socket(fileno=listening) as held:
        settings = Configuration(given=properties).settings(to, held.getsockname()[0])
        url = url_of(held, tls=settings.tls is not None)
        logger.info("the gateway serves at %s, for %s", url, bootstrap)
        report(f"{READY}http={url}")
        await exit_within(STOP_S, serve(settings, held))
