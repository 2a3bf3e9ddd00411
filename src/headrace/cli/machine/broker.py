"""A broker as a process of `headrace up --brokers N`."""

import asyncio
import logging

from headrace.broker.config import BrokerConfig
from headrace.broker.server import Broker
from headrace.cli.machine.log import pass_warnings_on
from headrace.cli.machine.member import READY, say

logger = logging.getLogger("headrace")


async def serve(**settings: str) -> None:
    """Run a broker until it is told to stop."""
    pass_warnings_on()
    broker = Broker(BrokerConfig.of(settings))
    await broker.start()
    try:
        logger.info("broker %d serves at %s", broker.broker_id, broker.bootstrap)
        say(f"{READY}bootstrap={broker.bootstrap}")
        await asyncio.get_running_loop().create_future()  # until it is cancelled
    finally:
        await broker.stop()
