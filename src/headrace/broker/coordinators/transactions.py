"""The coordinators of transactions: the runtime of `__transaction_state`, and what they do elsewhere."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import islice
from typing import Any, Final

from headrace.broker.coordinators.internal_topics import InternalTopicSettings
from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime
from headrace.broker.coordinators.shard import outcome
from headrace.broker.coordinators.transaction_markers import TransactionMarkers, TransactionShard
from headrace.broker.coordinators.transaction_verification import AskBroker
from headrace.broker.translate import Failure, error_code
from headrace.coordinators.decision import Decision
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.transaction.coordinator import TransactionCoordinator
from headrace.coordinators.transaction.errors import ProducerIdRequired
from headrace.coordinators.transaction.limits import TransactionLimits
from headrace.coordinators.transaction.state import Transaction
from headrace.protocol.errors import ErrorCode

TRANSACTIONS_TOPIC: Final = "__transaction_state"
TRANSACTIONS_TOPIC_SETTINGS: Final = InternalTopicSettings(
    partitions="transaction.state.log.num.partitions",
    replicas="transaction.state.log.replication.factor",
    segment_bytes="transaction.state.log.segment.bytes",
    min_isr="transaction.state.log.min.isr",
)
_RETRY_S: Final = 0.1
_EXPIRED_TOGETHER: Final = 500  # transactional ids that are looked at between two turns of others

logger = logging.getLogger(__name__)

Decide = Callable[[TransactionCoordinator, int, int | None], Decision[Any]]
"""Decides about a request: the coordinator, the time, and a new producer id if one was needed."""


def fencing_code(failure: Failure, *, knows_fenced: bool) -> ErrorCode:
    """Return the error code for a client, which may be too old for PRODUCER_FENCED."""
    code = error_code(failure)
    if code == ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


class Transactions:
    """The transactions that this broker coordinates."""

    def __init__(
        self,
        host: CoordinatorHost,
        limits: TransactionLimits,
        *,
        new_producer_id: Callable[[], Awaitable[int]],
        ask: AskBroker,
    ) -> None:
        self.limits = limits
        self.markers = TransactionMarkers(host.image, ask, host.loop)
        self.runtime = CoordinatorRuntime(
            TRANSACTIONS_TOPIC, host, self._new_coordinator, applied=self._applied
        )
        self._new_producer_id = new_producer_id
        self._loop = host.loop

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.limits)

    def use(self, limits: TransactionLimits) -> None:
        """Use other limits from now on: the broker's settings have changed."""
        self.limits = limits
        for shard in self.runtime.all_shards:
            shard.machine.limits = limits

    def shard(self, transactional_id: str) -> TransactionShard:
        """Return the coordinator of the transactional id, if this broker may answer for it."""
        return self.runtime.shard(transactional_id)

    async def write(self, transactional_id: str, decide: Decide) -> Any:
        """Carry out a decision that may need a new producer id, and return its answer once committed."""
        new_producer_id = None
        while True:
            try:
                reply = self.shard(transactional_id).write(partial(_decide, decide, new_producer_id))
            except ProducerIdRequired:
                new_producer_id = await self._new_producer_id()
            else:
                return await reply

    async def expire_ids(self) -> None:
        """Delete transactional ids that were not used for transactional.id.expiration.ms."""
        for shard in self.runtime.shards:
            names = iter(list(shard.machine.transactions))
            while some := list(islice(names, _EXPIRED_TOGETHER)):
                try:
                    shard.write_in_parts(partial(_expire, some))
                except CoordinatorError as error:
                    logger.warning("transactions: ids of %s could not expire: %s", shard.partition.id, error)
                    break
                await asyncio.sleep(0)

    def stop(self) -> None:
        self.markers.stop()

    def _applied(self, shard: TransactionShard) -> None:
        """Write the markers of transactions that have just been prepared."""
        prepared = shard.machine.take_prepared()
        if prepared:
            self._write_when_committed(shard, prepared)

    def _write_when_committed(self, shard: TransactionShard, prepared: list[Transaction]) -> None:
        """Write markers once the outcome is committed: before, another coordinator may decide otherwise."""
        if not shard.is_current:
            return  # the next coordinator finds them prepared
        try:
            commit = shard.barrier()
        except CoordinatorError as error:
            self._retry(shard, prepared, error)
            return
        if commit is None:
            for transaction in prepared:
                self.markers.write(shard, transaction)
        else:
            commit.add_done_callback(lambda _: self._write_when_committed(shard, prepared))
            commit.add_done_callback(outcome)

    def _retry(self, shard: TransactionShard, prepared: list[Transaction], error: Exception) -> None:
        logger.info("transactions: markers of %s have to wait: %s", shard.partition.id, error)
        self._loop().call_later(_RETRY_S, self._write_when_committed, shard, prepared)


def _decide(
    decide: Decide, new_producer_id: int | None, machine: TransactionCoordinator, now_ms: int
) -> Decision[Any]:
    return decide(machine, now_ms, new_producer_id)


def _expire(names: list[str], machine: TransactionCoordinator, now_ms: int) -> Decision[Any]:
    return machine.expire_ids(names, now_ms)
