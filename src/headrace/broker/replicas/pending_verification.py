"""The verification of a transaction before its first batch is appended."""

import asyncio

from headrace.coordinators.decision import Producer
from headrace.protocol.errors import KafkaError


class Verification:
    """The question to a transaction coordinator whether a producer's transaction includes a partition."""

    __slots__ = ("_error", "_is_done", "_waiting", "epoch", "holds", "leader_epoch", "producer_id")

    def __init__(self, producer: Producer, leader_epoch: int) -> None:
        self.producer_id, self.epoch = producer
        self.leader_epoch = leader_epoch  # of the partition when the question was asked
        self.holds = 0  # batches that are neither appended nor refused yet
        self._waiting: list[asyncio.Future[KafkaError | None]] = []
        self._is_done = False
        self._error: KafkaError | None = None

    async def answer(self) -> KafkaError | None:
        """Return the error of the verification, or None, to one batch after the other in their order.

        Every batch has a future of its own: a client that disconnects cancels its future.
        """
        if self._is_done:
            await asyncio.sleep(
                0
            )  # behind the batches that `finish` has woken in this turn of the event loop
            return self._error
        waiter: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        return await waiter

    def finish(self, error: KafkaError | None) -> None:
        """Give the batches that wait their answer."""
        self._is_done, self._error = True, error
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(error)
