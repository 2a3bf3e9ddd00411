"""The real broker on a simulated world: its own code, but for sockets, files, threads and kazoo.

Registration, election, the controller, channels, replicas, fetchers, proposals, sessions and handlers are the
ones that are shipped. `Peer`, `SimSession`, `SimLogs` and `SimLog` replace the rest, with the same interface.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.errors import NotLeader
from headrace.broker.replicas.partition import ANY_EPOCH, Partition
from headrace.broker.replicas.purgatory import WaitingFetch
from headrace.broker.requests.dispatch import load_handlers
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.message import Message
from headrace.protocol.schema.list_offsets import ListOffsetsRequest
from headrace.security.listeners import Endpoint
from simulation.coordinators import coordinators_in_memory
from simulation.disk import SimDisk, SimLogs
from simulation.exits import SimExitWatch, has_exited, own_process
from simulation.network import End
from simulation.peer import NOTHING, Peer, Served, WhoLeads
from simulation.process import Process
from simulation.session import SimSession

MIN_INSYNC_REPLICAS = 2
SESSION_TIMEOUT_MS = 1500

_SETTINGS = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "replica.lag.time.max.ms": "1000",
    "replica.fetch.max.bytes": "4",  # records: a log counts one byte each
    "min.insync.replicas": str(MIN_INSYNC_REPLICAS),
    "log.cleaner.enable": "false",
    "leader.imbalance.check.interval.seconds": "5",
    "headrace.in.doubt.wait.ms": "3000",
    "replica.high.watermark.checkpoint.interval.ms": "2000",
}


@cache
def _config(broker_id: int, node: str | None) -> BrokerConfig:
    more = {} if node is None else {"headrace.node": node}
    return BrokerConfig.of(_SETTINGS | more | {"broker.id": str(broker_id)})


@contextmanager
def simulated() -> Iterator[None]:
    """Have brokers of this program connect by the simulated network, and read the simulated clock."""
    load_handlers()
    clock = SimpleNamespace(
        monotonic=lambda: asyncio.get_running_loop().time(),
        monotonic_ns=lambda: int(asyncio.get_running_loop().time() * 1e9),
        perf_counter=lambda: asyncio.get_running_loop().time(),
        time_ns=lambda: int(asyncio.get_running_loop().time() * 1e9),
    )
    with (
        coordinators_in_memory(clock),
        patch("headrace.broker.peers.peer.Peer", Peer),
        patch("headrace.broker.membership.lease.time", clock),
        patch("headrace.broker.membership.registration.own_process", own_process),
        patch("headrace.broker.membership.registration.has_exited", has_exited),
        patch("headrace.broker.membership.exited_brokers.ExitWatch", SimExitWatch),
        patch("headrace.broker.replicas.partition.time", clock),
        patch("headrace.broker.slices.time", clock),
        # Sets of these are walked through: in an order that does not depend on where they lie in memory.
        patch.object(WaitingFetch, "__hash__", lambda self: hash(self._timer.when())),
        patch.object(Partition, "__hash__", lambda self: hash(self.id)),
    ):
        yield


class SimBroker(Broker):
    """One life of a broker."""

    session: Any
    logs: Any

    def __init__(self, broker_id: int, process: Process, disk: SimDisk, node: str | None = None) -> None:
        super().__init__(_config(broker_id, node))
        self.process = process
        self._loop = process.loop
        self._disk = disk
        self.endpoints = [Endpoint("PLAINTEXT", process.host.name, 9092)]
        self.on_serving: Callable[[Partition], None] = lambda _partition: None
        self.is_silent = False  # about how far its logs go: controllers choose leaders without its word

    def now_ms(self) -> int:
        return int(self.process.world.now * 1000)

    async def start(self) -> None:
        """Join the cluster: what `Broker.start` does, without files and sockets."""
        self.session = SimSession(self.process, self.config.integer("zookeeper.session.timeout.ms") / 1000)
        await self.session.start()
        self.image.cluster_id = "simulated"
        world = self.process.world
        self.logs = SimLogs(self._disk, self.now_ms, world.random, world.stagings)
        self.producer_ids = ProducerIds(self.session, self.broker_id)
        self.process.host.accept = self._accept
        self.process.host.listener = self.process
        try:
            await self._join_cluster()
        except BaseException:
            await asyncio.to_thread(self.logs.close)
            await self._stop_listening()
            await self.session.close()
            raise
        self._housekeeping.start()

    def _accept(self, end: End) -> None:
        Served(end, self)

    async def _stop_listening(self) -> None:
        self.process.host.listener = None
        self.process.network.stop_serving(self.process)

    def ensure_lease(self, partition: Partition) -> None:
        """Raise as the broker does; what it lets through is noted: it serves the partition right now."""
        super().ensure_lease(partition)
        if partition.leadership is not None:
            self.on_serving(partition)

    def holds_lease(self, partition: Partition) -> bool:
        """Whether it would take a write with acks=1 right now."""
        try:
            super().ensure_lease(partition)
        except NotLeader:
            return False
        return True

    def who_leads(self, question: WhoLeads) -> int:
        """What a client is told: -1 if nobody leads, or it is not known."""
        topic = self.image.topics.get(question.topic)
        state = None if topic is None else topic.states.get(question.partition)
        return -1 if state is None else state.leader

    def withholds(self, request: object) -> bool:
        """Whether a controller that asks how far logs go gets no answer; whoever follows a leader does."""
        if not self.is_silent or not isinstance(request, ListOffsetsRequest):
            return False
        return all(
            each.current_leader_epoch == ANY_EPOCH for topic in request.topics for each in topic.partitions
        )

    async def handle_locally(self, request: Message, version: int) -> Any:
        return NOTHING if self.withholds(request) else await super().handle_locally(request, version)
