"""A coordinator and a broker in one process of their own, so that a test can kill it.

python runner.py DIR NAME=VALUE…

Prints `ready HOST:PORT`. Ends cleanly on SIGTERM, and also when its standard input closes: a test run that
dies leaves no broker behind.
"""

import asyncio
import logging
import signal
import sys
from pathlib import Path

from headrace.broker.config import BrokerConfig
from headrace.broker.server import Broker
from headrace.coordination.embedded.server import Coordinator


async def main(root: Path, settings: dict[str, str]) -> None:
    loop = asyncio.get_running_loop()
    asked_to_stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop.set)
    loop.add_reader(sys.stdin.fileno(), asked_to_stop.set)
    async with Coordinator(root / "coordinator", port=0, tick_ms=500) as coordinator:
        broker = Broker(BrokerConfig.of({"zookeeper.connect": coordinator.address} | settings))
        await broker.start()
        endpoint = broker.endpoints[0]
        sys.stdout.write(f"ready {endpoint.host}:{endpoint.port}\n")
        sys.stdout.flush()
        await asked_to_stop.wait()
        await broker.stop()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    asyncio.run(main(Path(sys.argv[1]), dict(each.split("=", 1) for each in sys.argv[2:])))
