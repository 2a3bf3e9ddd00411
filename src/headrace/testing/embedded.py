"""A broker as tests have it in their own process: with faults before its handlers, and a sudden end."""

import asyncio
from collections.abc import Callable

from headrace.broker.config import BrokerConfig
from headrace.broker.connections import ClientConnection, Connections
from headrace.broker.server import Broker
from headrace.testing.faults import Faults


class _RefusingConnections(Connections):
    """Connections that a fault may refuse."""

    def __init__(
        self, config: BrokerConfig, open_logs: Callable[[], int], refuses: Callable[[], bool]
    ) -> None:
        super().__init__(config, open_logs)
        self._refuses = refuses

    def admit(self, connection: ClientConnection) -> bool:
        return not self._refuses() and super().admit(connection)


class EmbeddedBroker(Broker):
    """The real broker in all else."""

    def __init__(self, config: BrokerConfig, faults: Faults) -> None:
        super().__init__(config)
        self._faults = faults
        self.handlers = faults.handlers()
        self.connections = _RefusingConnections(config, lambda: len(self.logs.logs), self._refuses)

    def _refuses(self) -> bool:
        return self._faults.refuses(self.broker_id)

    async def crash(self) -> None:
        """End as a process that is killed does: nobody is told, nothing is written.

        Only its session ends at once, which that of a process would do when its time is up.
        """
        for connection in self.connections.all():
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
