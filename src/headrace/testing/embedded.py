"""A broker as tests have it in their own process: with faults before its handlers, and a sudden end."""

import asyncio

from headrace.broker.config import BrokerConfig
from headrace.broker.connection import Connection
from headrace.broker.server import Broker
from headrace.testing.faults import Faults


class EmbeddedBroker(Broker):
    """The real broker in all else."""

    def __init__(self, config: BrokerConfig, faults: Faults) -> None:
        super().__init__(config)
        self._faults = faults
        self.handlers = faults.handlers()

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections)

    def admit(self, connection: Connection) -> bool:
        """Take a connection in, unless a fault is at the door."""
        return not self._faults.refuses(self.broker_id) and super().admit(connection)

    async def crash(self) -> None:
        """End as a process that is killed does: nobody is told, nothing is written.

        Only its session ends at once, which that of a process would do when its time is up.
        """
        for connection in self.connections:
            connection.abort()
        self._housekeeping.stop()
        await self._stop_listening()
        await self.inspections.stop()
        self.stop_coordinators()
        self.replicas.stop()
        self._leave_cluster()
        await self._housekeeping.stopped()
        await asyncio.to_thread(self.logs.release)
        await self.session.close()
