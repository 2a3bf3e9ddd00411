"""Producer ids, unique in the cluster: taken from ZooKeeper a block at a time, handed out one by one."""

import asyncio
import time

from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import ProducerIdBlock

BLOCK_SIZE = 1000


def _first_ever() -> int:
    """Where a new cluster begins: at the clock, as its brokers' logs may be older than itself.

    Kafka, and we once, began at 0. Files of such a cluster remember producers by their ids, and would take a
    new one of the same id for one of those.
    """
    return time.time_ns() // 1_000_000


class ProducerIds:
    """Hands out each id once; a crash leaves the rest of a block unused."""

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
        """Claim the block after the one claimed last; somebody else may be quicker, then try again."""
        found = await self._session.get(ProducerIdBlock.path)
        first = _first_ever() if found is None else ProducerIdBlock.decode(found.data).last + 1
        block = ProducerIdBlock(broker_id=self._broker_id, first=first, last=first + BLOCK_SIZE - 1)
        try:
            if found is None:
                await self._session.create(ProducerIdBlock.path, block.encode())
            else:
                await self._session.set(ProducerIdBlock.path, block.encode(), found.version)
        except Conflict:
            return
        self._next, self._last = block.first, block.last
