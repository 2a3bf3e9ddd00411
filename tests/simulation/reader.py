"""A reader: from the leader or from any replica, it only ever sees what is committed."""

import asyncio

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from simulation.client import PATIENCE_S, Client
from simulation.ledger import Ledger
from simulation.log import Batch
from simulation.network import Network
from simulation.world import World

_VERSION = 12


class Reader(Client):
    """Reads on and on; whatever it gets must stand in the ledger."""

    isolation_level = 0  # read_uncommitted

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        brokers: list[str],
        id_: TopicPartition,
        *,
        ledger: Ledger,
    ) -> None:
        super().__init__(world, network, name, brokers, id_)
        self._ledger = ledger
        self._offset = 0
        self.process.run(self._work())

    async def _work(self) -> None:
        while True:
            broker = await self.leader()
            if self.world.random.random() < 0.3:
                broker = self.world.random.choice(self.brokers)
            try:
                peer = await self.connection(broker)
                answer = await peer.ask(self._request(), _VERSION, timeout_s=PATIENCE_S)
            except PeerGone:
                continue
            self._take(broker, answer.responses[0].partitions[0])
            await asyncio.sleep(self.world.random.random())

    def _take(self, broker: str, data: PartitionData) -> None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._offset = self.world.random.randint(0, len(self._ledger.committed))
        elif data.error_code == ErrorCode.NONE:
            batches: tuple[Batch, ...] = data.records or ()  # type: ignore[assignment]
            for batch in batches:
                self._ledger.check_read(f"a reader at {broker}", batch)
                self._offset = batch.base_offset + 1

    def _request(self) -> FetchRequest:
        partition = FetchPartition(
            partition=self.id.partition,
            fetch_offset=self._offset,
            partition_max_bytes=self.world.random.randint(1, 8),
        )
        return FetchRequest(
            max_wait_ms=self.world.random.choice((0, 200)),
            min_bytes=1,
            isolation_level=self.isolation_level,
            topics=[FetchTopic(topic=self.id.topic, partitions=[partition])],
        )
