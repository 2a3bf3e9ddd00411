"""Producer ids, unique in the cluster: claimed in ZooKeeper in blocks, allocated one by one."""

import asyncio
import time

from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import ProducerIdBlock

BLOCK_SIZE = 1000


class ProducerIds:
    """Allocates each id once; a crash leaves the rest of a block unused."""

    def __init__(self, session: ZooKeeperSession, broker_id: int) -> None:
        self._session = session
        self._broker_id = broker_id
        self._next = 0
        self._last = -1
        self._lock = asyncio.Lock()

    async def take(self) -> int:
        async with self._lock:
            while self._next > self._last:
                await self._take_block()
            self._next += 1
            return self._next - 1

    async def _take_block(self) -> None:
        """Claim the next block, unless another broker claims it first: then the caller retries."""
        found = await self._session.get(ProducerIdBlock.path)
        # A new cluster begins with the time: the logs of its brokers may be older than the cluster, and the
        # producer state in them has low ids, because Kafka and earlier versions of Headrace begin at 0.
        first = time.time_ns() // 1_000_000 if found is None else ProducerIdBlock.decode(found.data).last + 1
        block = ProducerIdBlock(broker_id=self._broker_id, first=first, last=first + BLOCK_SIZE - 1)
        try:
            if found is None:
                await self._session.create(ProducerIdBlock.path, block.encode())
            else:
                await self._session.set(ProducerIdBlock.path, block.encode(), found.version)
        except Conflict:
            return
        self._next, self._last = block.first, block.last
