"""A producer of unique values, which remembers what was promised.

It is idempotent, keeps a few requests in flight, and after a failure sends all that is unanswered again, in
order, wherever the leader is by then. So a value may arrive twice, on two connections, and must be written
once.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from simulation.client import PATIENCE_S, Client
from simulation.ledger import Ledger
from simulation.log import Batch
from simulation.network import Network
from simulation.peer import Peer
from simulation.world import World

ALL, LEADER = -1, 1  # acks
_VERSION = 9
_LOST_ITS_MEMORY = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.INVALID_PRODUCER_EPOCH}
"""What it had written was not written with acks=all, and is gone: it goes on as another producer."""


class Producer(Client):
    """Writes one value a batch, until it is told to stop and all that it has sent is acknowledged."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        brokers: list[str],
        id_: TopicPartition,
        *,
        values: Iterator[int],
        ledger: Ledger,
        acks: int,
        window: int,
        pause_s: float,
    ) -> None:
        super().__init__(world, network, name, brokers, id_)
        self.acknowledged = 0
        self.is_stopped = False
        self._values = values
        self._ledger = ledger
        self._acks = acks
        self._window = window
        self._pause_s = pause_s
        self._waiting: deque[Batch] = deque()  # sent or to be sent, and not acknowledged
        self._be_another()
        self.process.run(self._work())

    @property
    def is_done(self) -> bool:
        return self.is_stopped and not self._waiting

    def _be_another(self) -> None:
        """Start over under another id; what was sent and not answered is not sent again."""
        self._producer_id = next(self._values)  # ids are values that nobody writes
        self._sequence = 0
        self._waiting.clear()

    async def _work(self) -> None:
        while not self.is_done:
            while not self.is_stopped and len(self._waiting) < self._window:
                self._waiting.append(Batch(next(self._values), self._producer_id, 0, self._sequence))
                self._sequence += 1
            try:
                leader = await self.leader()
                await self._send(leader, await self.connection(leader))
            except PeerGone:
                await asyncio.sleep(self.world.random.random() * 0.1)
            await asyncio.sleep(self.world.random.random() * self._pause_s)

    async def _send(self, leader: str, peer: Peer) -> None:
        """Send all that waits, without waiting for answers in between; take off what is acknowledged."""
        asked = [
            asyncio.ensure_future(peer.ask(self._request(batch), _VERSION, timeout_s=PATIENCE_S))
            for batch in self._waiting
        ]
        try:
            for each in asked:
                reply = (await each).responses[0].partition_responses[0]
                if reply.error_code != ErrorCode.NONE:
                    self.world.say(self.process.name, "error %d from %s", reply.error_code, leader)
                    if reply.error_code in _LOST_ITS_MEMORY:
                        self._be_another()
                    return
                self._take_acknowledged(leader, reply.base_offset)
        finally:
            if not asked[-1].done():
                peer.close()
            await asyncio.gather(*asked, return_exceptions=True)

    def _take_acknowledged(self, leader: str, offset: int) -> None:
        batch = self._waiting.popleft()
        self.world.say(self.process.name, "%s acknowledges value %d at %d", leader, batch.value, offset)
        self.acknowledged += 1
        if self._acks == ALL:
            self._ledger.check_acknowledged(batch.value, offset)

    def _request(self, batch: Batch) -> ProduceRequest:
        data = PartitionProduceData(index=self.id.partition, records=(batch,))  # type: ignore[arg-type]
        return ProduceRequest(
            acks=self._acks,
            timeout_ms=int(PATIENCE_S * 800),  # the broker's patience ends a little earlier
            topic_data=[TopicProduceData(name=self.id.topic, partition_data=[data])],
        )
