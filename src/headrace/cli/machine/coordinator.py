"""The embedded coordinator as a process of `headrace up --brokers N`."""

from pathlib import Path

from headrace.cli.machine.log import pass_warnings_on
from headrace.cli.machine.member import READY, say
from headrace.coordination.embedded.server import Coordinator


async def serve(*, data: str, port: int, first: bool) -> None:
    """Run the coordinator until it is told to stop."""
    pass_warnings_on()
    async with Coordinator(Path(data), port=port) as coordinator:
        if first:
            coordinator.end_sessions()  # of brokers that ended with an earlier parent
        say(f"{READY}zookeeper={coordinator.address}")
        await coordinator.wait_failed()
