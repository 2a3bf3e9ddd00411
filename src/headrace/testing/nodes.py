"""A broker of a test: on the event loop of this process, or as a process of its own."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from headrace.broker.network.connections import ClientConnection, Connections
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.cli.machine.process import ProcessEnded, Service
from headrace.testing.faults import Faults

STOP_S: Final = 10.0
_LOG_LINE: Final = re.compile(r"\d{4}-\S+ \S+ (\w+) ")
_LOUD: Final = {"WARNING", "ERROR", "CRITICAL"}


class NotStarted(Exception):
    """The broker's process ended, or was not ready in time; the message has the end of its log."""


class _RefusingConnections(Connections):
    """Connections that a fault may refuse."""

    def __init__(
        self,
        config: BrokerConfig,
        open_logs: Callable[[], int],
        quotas: ClientQuotas,
        refuses: Callable[[], bool],
    ) -> None:
        super().__init__(config, open_logs, quotas)
        self._refuses = refuses

    def admit(self, connection: ClientConnection) -> bool:
        return not self._refuses() and super().admit(connection)


class EmbeddedBroker(Broker):
    """The real broker, with faults before its handlers, and a `crash`."""

    def __init__(self, config: BrokerConfig, faults: Faults) -> None:
        super().__init__(config)
        self.handlers = faults.handlers()
        markers = self.transactions.markers
        markers.ask = partial(faults.send_markers, self, markers.ask)
        self.connections = _RefusingConnections(
            config, lambda: len(self.logs.logs), self.quotas, lambda: faults.refuses(self.broker_id)
        )

    async def crash(self) -> None:
        """End as a killed process does: no broker is informed, nothing is written.

        Only its ZooKeeper session ends at once, while that of a killed process would expire.
        """
        for connection in self.connections.all():
            connection.abort()
        self._housekeeping.stop()
        await self._stop_listening()
        self.stop_coordinators()
        await self.inspections.stop()
        self.replicas.stop()
        self._leave_cluster()
        await self._housekeeping.stopped()
        await asyncio.to_thread(self.logs.release)
        await self.session.close()


class EmbeddedNode:
    """A broker in this process, start after start, with the same port and data. For the loop's thread."""

    def __init__(self, settings: Mapping[str, str], faults: Faults) -> None:
        self.broker_id = int(settings["broker.id"])
        self._settings, self._faults = settings, faults
        self._changing = asyncio.Lock()  # held while the broker starts or ends
        self._killing: asyncio.Task[None] | None = None
        self.broker: EmbeddedBroker | None = None

    @property
    def running(self) -> bool:
        return self.broker is not None

    async def start(self) -> None:
        """Start the broker, and return when clients can connect."""
        async with self._changing:
            await self._start()

    async def stop(self) -> None:
        """Shut the broker down cleanly."""
        async with self._changing:
            if self.broker is not None:
                broker, self.broker = self.broker, None
                await broker.stop()

    async def kill(self, *, restart: bool = False) -> None:
        """End the broker as a crash would, and start it again if `restart` is true, before anything else."""
        async with self._changing:
            if self.broker is not None:
                broker, self.broker = self.broker, None
                await broker.crash()
            if restart:
                await self._start()

    def kill_soon(self, *, restart: bool) -> None:
        """Begin to kill the broker, which has to run."""
        assert self.running, "a broker that does not run cannot be killed"
        self._killing = asyncio.get_running_loop().create_task(self.kill(restart=restart))

    async def _start(self) -> None:
        broker = EmbeddedBroker(BrokerConfig.of(self._settings), self._faults)
        await broker.start()
        self.broker = broker


class _BrokerProcess(Service):
    stop_s = STOP_S

    def _log_line(self, line: str) -> None:
        """Log nothing: `ProcessNode.warnings` reads the log file, which has tracebacks as well."""


class ProcessNode:
    """A broker in a process of its own, which ends with this process, even if this one is killed."""

    def __init__(self, settings: Mapping[str, str], log: Path) -> None:
        self.broker_id = int(settings["broker.id"])
        self._settings, self.log = settings, log
        self._process: Service = _BrokerProcess(
            f"broker-{self.broker_id}", log, (), service="broker", settings=settings
        )

    @property
    def running(self) -> bool:
        return self._process.running

    @property
    def pid(self) -> int:
        return self._process.pid

    async def start(self) -> None:
        BrokerConfig.of(self._settings)  # an invalid setting is raised here, not in the process
        try:
            await self._process.start()
        except ProcessEnded as ended:
            log = "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])
            raise NotStarted(f"{ended}\n{log}") from ended

    async def stop(self) -> None:
        await self._process.stop()

    async def kill(self) -> None:
        await self._process.kill()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def warnings(self) -> list[str]:
        """Return the warnings and errors in its log, with tracebacks."""
        loud, found = False, list[str]()
        for line in self.log.read_text(errors="replace").splitlines() if self.log.exists() else ():
            begins = _LOG_LINE.match(line)
            loud = loud if begins is None else begins[1] in _LOUD
            if loud:
                found.append(line)
        return found


BrokerNode = EmbeddedNode | ProcessNode
