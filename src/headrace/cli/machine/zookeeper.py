"""A ZooKeeper server as a process that is kept running."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from headrace.cli.machine.process import Program
from headrace.coordination.zookeeper import Server


def server_process(number: int, server: Server, log: Path, inherits: Sequence[int] = ()) -> Program:
    """The process of a server, which is ready once the server answers requests."""

    async def serves() -> bool:
        return await asyncio.to_thread(server.serves)

    return Program(f"zookeeper-{number}", log, inherits, command=server.prepare(), serves=serves)
