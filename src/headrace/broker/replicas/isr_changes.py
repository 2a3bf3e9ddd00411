"""Changes of the ISR: a leader proposes them to the controller with AlterPartition."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping

from headrace.broker.peers.peer import AskController
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema import alter_partition
from headrace.replication.leader import Leader

VERSIONS = range(3, 4)
_TIMEOUT_S = 5.0
_RETRY_S = 0.1
_REFUSED = {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST}
"""Errors that are final: the controller has seen the partition epoch that the proposal was made for."""

logger = logging.getLogger(__name__)


class IsrChanges:
    """Proposes ISR changes of the partitions that this broker leads, one request at a time."""

    def __init__(
        self,
        broker_id: int,
        partitions: Mapping[TopicPartition, Partition],
        *,
        broker_epoch: Callable[[], int],
        max_lag_ms: Callable[[], int],
        live_brokers: Callable[[], Collection[int]],
        ask_controller: AskController,
    ) -> None:
        self._broker_id = broker_id
        self._partitions = partitions
        self._broker_epoch = broker_epoch
        self._max_lag_ms = max_lag_ms
        self._live_brokers = live_brokers
        self._ask_controller = ask_controller
        self._candidates: set[Partition] = set()
        self._task: asyncio.Task[None] | None = None

    def consider(self, partition: Partition) -> None:
        """Propose another ISR if a follower that has just fetched belongs in it."""
        if self._wanted(partition) is not None:
            self._candidates.add(partition)
            if self._task is None or self._task.done():
                self._task = asyncio.get_running_loop().create_task(self._propose_all())

    def look_at_all(self) -> Steps[None]:
        """Propose, in steps, to remove followers that have lagged for replica.lag.time.max.ms."""
        for number, partition in enumerate(tuple(self._partitions.values())):
            if not number % STEP:
                yield
            if partition.leadership is not None and len(partition.replicas) > 1:
                self.consider(partition)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _wanted(self, partition: Partition) -> frozenset[int] | None:
        return partition.wanted_isr(
            now_ms=monotonic_ms(), max_lag_ms=self._max_lag_ms(), live=self._live_brokers()
        )

    async def _propose_all(self) -> None:
        while self._candidates:
            partitions, self._candidates = self._candidates, set()
            proposals: dict[Partition, frozenset[int]] = {}
            for partition in partitions:
                if partition.leadership is not None:
                    # A proposal without an answer may have been accepted: it is sent again unchanged.
                    wanted = partition.leadership.proposed or self._wanted(partition)
                    if wanted is not None:
                        proposals[partition] = wanted
                        partition.leadership.propose(wanted)
            if proposals:
                await self._propose_safely(proposals)
                pending = [
                    each for each in proposals if each.leadership is not None and each.leadership.proposed
                ]
                if pending:
                    await asyncio.sleep(_RETRY_S)
                    self._candidates.update(pending)

    async def _propose_safely(self, proposals: dict[Partition, frozenset[int]]) -> None:
        try:
            await self._propose(proposals)
        except Exception:  # otherwise this task would end, and no ISR would ever change again
            logger.exception("an ISR change could not be proposed and is retried")

    async def _propose(self, proposals: dict[Partition, frozenset[int]]) -> None:
        """Send one request. Without an answer the proposals stay pending: they may have been accepted."""
        try:
            response: alter_partition.AlterPartitionResponse = await self._ask_controller(
                self._request(proposals), VERSIONS, timeout_s=_TIMEOUT_S
            )
        except (PeerGone, *FAILURES) as error:
            logger.debug("an ISR change could not be proposed and is retried: %s", error)
            return
        if response.error_code:
            logger.debug("the controller refuses ISR changes: error %d", response.error_code)
            return
        by_partition = {(proposal.topic_id, proposal.id.partition): proposal for proposal in proposals}
        for topic in response.topics:
            for answer in topic.partitions:
                partition = by_partition.get((topic.topic_id, answer.partition_index))
                if partition is not None:
                    self._take(partition, answer)

    def _take(
        self, partition: Partition, answer: alter_partition.AlterPartitionResponsePartitionData
    ) -> None:
        if answer.error_code in _REFUSED:
            if partition.leadership is not None:
                partition.leadership.withdraw()
            return
        if answer.error_code != ErrorCode.NONE:
            # Another broker leads, or the state has changed: an UpdateMetadata is on its way. Or a former
            # controller has answered, which does not know the partition epoch that this leader has.
            logger.debug("%s: the ISR was not changed: error %d", partition.id, answer.error_code)
        # An accepted change takes effect here with the UpdateMetadata that follows.

    def _epoch_of(self, broker_id: int, leadership: Leader) -> int:
        if broker_id == self._broker_id:
            return self._broker_epoch()
        follower = leadership.followers.get(broker_id)
        return -1 if follower is None else follower.broker_epoch

    def _request(self, proposals: dict[Partition, frozenset[int]]) -> alter_partition.AlterPartitionRequest:
        by_topic: dict[bytes, list[alter_partition.AlterPartitionRequestPartitionData]] = {}
        for partition, wanted in proposals.items():
            leadership = partition.leadership
            assert leadership is not None, "only leaders propose"
            by_topic.setdefault(partition.topic_id, []).append(
                alter_partition.AlterPartitionRequestPartitionData(
                    partition_index=partition.id.partition,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[
                        alter_partition.BrokerState(
                            broker_id=each, broker_epoch=self._epoch_of(each, leadership)
                        )
                        for each in sorted(wanted)
                    ],
                    partition_epoch=partition.version,
                )
            )
        return alter_partition.AlterPartitionRequest(
            broker_id=self._broker_id,
            broker_epoch=self._broker_epoch(),
            topics=[
                alter_partition.AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )
