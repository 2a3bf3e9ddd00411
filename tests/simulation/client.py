"""A client: a process that looks for a partition's leader, as long as it takes, and asks it."""

import asyncio

from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.security.listeners import Endpoint
from simulation.network import Network
from simulation.peer import Peer, WhoLeads
from simulation.process import Process
from simulation.world import World

PATIENCE_S = 1.0  # with one request


class Client:
    """One partition's client; keeps a connection to each broker that it has asked."""

    def __init__(
        self, world: World, network: Network, name: str, brokers: list[str], id_: TopicPartition
    ) -> None:
        self.world = world
        self.process = Process(world, network, network.host(name))
        self.id = id_
        self.brokers = brokers
        self._connections: dict[str, Peer] = {}

    async def connection(self, broker: str) -> Peer:
        found = self._connections.get(broker)
        if found is None or not found.is_open:
            found = self._connections[broker] = await Peer.connect(Endpoint("PLAINTEXT", broker, 9092))
        return found

    async def leader(self, id_: TopicPartition | None = None) -> str:
        """The leader's name, as any broker knows it; asks one after another until one does."""
        while True:
            found = await self._ask_for_leader(self.world.random.choice(self.brokers), id_ or self.id)
            if found is not None:
                return found
            await asyncio.sleep(0.05 + self.world.random.random() * 0.2)

    async def _ask_for_leader(self, broker: str, id_: TopicPartition) -> str | None:
        try:
            peer = await self.connection(broker)
            found = await peer.ask(WhoLeads(*id_), 0, timeout_s=PATIENCE_S)
        except PeerGone:
            return None
        return None if found == -1 else f"b{found}"
