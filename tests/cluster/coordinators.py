"""What a cluster's brokers register with: the embedded coordinator, or an ensemble of three ZooKeepers."""

import contextlib
import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self

from cluster.places import HERE, Place
from headrace.coordination.zookeeper import PORTS_EACH
from ports import free_port, free_ports
from support.process import ServerProcess
from zookeepers import RunningZooKeeper, ZooKeeperProcess

TICK_MS: Final = 500  # a session may last from 2 to 20 of them
SERVERS: Final = 3


class Coordination(Protocol):
    """All of it at once: a story may take it away and bring it back."""

    @property
    def address(self) -> str: ...

    @property
    def running(self) -> bool: ...

    def start(self) -> None: ...

    def stop(self) -> object: ...

    def kill(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Embedded(ServerProcess):
    """`headrace coordinator`: one process."""

    directory: Final = "coordinator"

    def __init__(self, root: Path, place: Place = HERE) -> None:
        port = free_port() if place is HERE else 2181
        where = [f"--data={root / self.directory}", f"--host={place.host}", f"--port={port}"]
        super().__init__(
            ["coordinator", *where, f"--tick-ms={TICK_MS}"], root / "coordinator.log", inside=place.inside
        )

    def pause(self) -> None:
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.signal(signal.SIGCONT)


class EnsembleElsewhere(ServerProcess):
    """`headrace zookeeper`, three servers on a host of their own; they have ZooKeeper's usual tick."""

    directory: Final = "zookeeper"

    def __init__(self, root: Path, place: Place) -> None:
        where = [f"--data={root / self.directory}", f"--host={place.host}", f"--servers={SERVERS}"]
        super().__init__(["zookeeper", *where], root / "zookeeper.log", inside=place.inside)

    def kill(self) -> None:
        """Stop it: the servers are processes of their own, which a kill would leave behind."""
        if self.running:
            self.stop()

    def pause(self) -> None:
        raise NotImplementedError("its servers are out of reach")

    def resume(self) -> None:
        raise NotImplementedError("its servers are out of reach")


class Ensemble(RunningZooKeeper):
    """Apache ZooKeeper, three servers on this machine."""

    def __init__(self, root: Path) -> None:
        super().__init__(
            root / "zookeeper", servers=SERVERS, port=free_ports(PORTS_EACH * SERVERS), tick_ms=TICK_MS
        )

    @property
    def running(self) -> bool:
        return any(server.pid is not None for server in self.servers)

    def leader(self, besides: ZooKeeperProcess | None = None) -> ZooKeeperProcess | None:
        """The server that leads the ensemble, if one of those does that are asked."""
        asked = [each for each in self.servers if each is not besides]
        return next((each for each in asked if "Mode: leader" in each.four_letter_word("srvr")), None)

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def __exit__(self, *_error: object) -> None:
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        for server in self.servers:
            if server.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(server.pid, number)
