"""The coordinators of transactions, on `__transaction_state`, and what they do elsewhere."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final

from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime, InternalTopicSettings
from headrace.broker.coordinators.shard import outcome
from headrace.broker.coordinators.transaction_markers import TransactionMarkers, TransactionShard
from headrace.broker.coordinators.transaction_verification import TransactionVerifier
from headrace.broker.replicas.housekeeping import Job
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.translate import Failure, error_code
from headrace.coordinators.decision import Decision
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.transaction.coordinator import TransactionCoordinator, TransactionLimits
from headrace.coordinators.transaction.errors import ProducerIdRequired
from headrace.coordinators.transaction.state import Transaction, TransactionState
from headrace.protocol.between_brokers.broker_metrics import GAUGE, Family, Sample, counter, gauge
from headrace.protocol.errors import ErrorCode
from headrace.storage.topics import TRANSACTIONS_TOPIC

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


class Transactions(CoordinatorRuntime[TransactionCoordinator]):
    """The transactions that this broker coordinates, and the verification of those that others coordinate."""

    topic_settings = InternalTopicSettings(
        name=TRANSACTIONS_TOPIC,
        partitions="transaction.state.log.num.partitions",
        replicas="transaction.state.log.replication.factor",
        segment_bytes="transaction.state.log.segment.bytes",
        min_isr="transaction.state.log.min.isr",
    )
    key_type = 1

    def __init__(self, host: CoordinatorHost) -> None:
        super().__init__(host)
        self.limits = transaction_limits(host.config())
        self._peers = {name: host.new_peer_pool() for name in ("markers", "verification")}
        self.markers = TransactionMarkers(host.image, self._peers["markers"].ask, host.loop)
        self.verifier = TransactionVerifier(
            coordinator_id=self.coordinator_id,
            ask=self._peers["verification"].ask,
            loop=host.loop,
            is_enabled=lambda: host.config().flag("transaction.partition.verification.enable"),
        )

    def new_machine(self) -> TransactionCoordinator:
        return TransactionCoordinator(self.limits)

    def use_config(self, config: BrokerConfig) -> None:
        self.limits = transaction_limits(config)
        for shard in self.all_shards:
            shard.machine.limits = self.limits

    def periodic_jobs(self, config: BrokerConfig) -> list[Job]:
        name = "transaction.remove.expired.transaction.cleanup.interval.ms"
        return [Job(self.expire_ids, config.integer(name) / 1000)]

    def metrics(self) -> Iterator[Family]:
        """Yield the number of transactional ids by state, of timeouts, and of markers to be sent."""
        machines = [shard.machine for shard in self.shards]
        yield Family(
            name="headrace_transactions",
            kind=GAUGE,
            help="Transactional ids that this broker coordinates.",
            labels=("state",),
            samples=[
                Sample(labels=(state.kafka_name,), value=sum(machine.counts[state] for machine in machines))
                for state in TransactionState
            ],
        )
        yield counter(
            "headrace_transactions_timed_out_total",
            "Transactions that were aborted at their timeout, since their coordinator was loaded.",
            sum(machine.timed_out for machine in machines),
        )
        yield gauge(
            "headrace_transaction_markers_queued",
            "Transaction markers that wait to be sent to the leaders of their partitions.",
            self.markers.queued,
        )

    def stop(self) -> None:
        self.markers.stop()
        self.verifier.stop()
        for peers in self._peers.values():
            peers.close()
        self.stop_shards()

    async def write(self, transactional_id: str, decide: Decide) -> Any:
        """Carry out a decision that may need a new producer id, and return its answer once committed."""
        new_producer_id: int | None = None

        def decide_with_id(machine: TransactionCoordinator, now_ms: int) -> Decision[Any]:
            return decide(machine, now_ms, new_producer_id)

        while True:
            try:
                reply = self.shard(transactional_id).write(decide_with_id)
            except ProducerIdRequired:
                new_producer_id = await self.host.new_producer_id()
            else:
                return await reply

    async def expire_ids(self) -> None:
        """Delete transactional ids that were not used for transactional.id.expiration.ms."""
        for shard in self.shards:
            names = iter(list(shard.machine.transactions))
            while some := list(islice(names, _EXPIRED_TOGETHER)):
                try:
                    shard.write_in_parts(partial(TransactionCoordinator.expire_ids, names=some))
                except CoordinatorError as error:
                    logger.warning("transactions: ids of %s could not expire: %s", shard.partition.id, error)
                    break
                await asyncio.sleep(0)

    def applied(self, shard: TransactionShard) -> None:
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
            logger.info("transactions: markers of %s have to wait: %s", shard.partition.id, error)
            self.loop.call_later(_RETRY_S, self._write_when_committed, shard, prepared)
            return
        if commit is None:
            for transaction in prepared:
                self.markers.write(shard, transaction)
        else:
            commit.add_done_callback(lambda _: self._write_when_committed(shard, prepared))
            commit.add_done_callback(outcome)


def transaction_limits(config: BrokerConfig) -> TransactionLimits:
    """Return the settings that the transaction coordinator uses."""
    return TransactionLimits(
        max_timeout_ms=config.integer("transaction.max.timeout.ms"),
        id_expiration_ms=config.integer("transactional.id.expiration.ms"),
        two_phase_commit=config.flag("transaction.two.phase.commit.enable"),
    )
