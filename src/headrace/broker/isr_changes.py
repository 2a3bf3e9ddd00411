"""Who is in sync with the partitions led here: looked at by the clock, proposed to the controller."""

import asyncio
import logging
from typing import TYPE_CHECKING

from headrace.broker.partition import Partition, monotonic_ms
from headrace.broker.translate import FAILURES
from headrace.controller.channel import PeerGone
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartitionData,
    AlterPartitionRequestTopicData,
    AlterPartitionResponse,
    AlterPartitionResponsePartitionData,
    BrokerState,
)
from headrace.replication.leader import Leader

if TYPE_CHECKING:
    from headrace.broker.server import Broker

VERSION = 3
_TIMEOUT_S = 5.0
_RETRY_S = 0.1
_REFUSED_FOR_GOOD = {ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST}
"""The controller has seen the proposal in the state that it was made for, and said no."""

logger = logging.getLogger(__name__)


class IsrChanges:
    """Proposes, one request at a time, and takes the controller's answers in."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._candidates: set[Partition] = set()
        self._task: asyncio.Task[None] | None = None

    def consider(self, partition: Partition) -> None:
        """A follower has moved: it may have come into sync."""
        if self._wanted(partition) is not None:
            self._candidates.add(partition)
            if self._task is None or self._task.done():
                self._task = self._broker.loop.create_task(self._propose_all())

    def look_at_all(self) -> None:
        """Time has passed: somebody may have fallen out of sync."""
        for partition in self._broker.partitions.values():
            if partition.leadership is not None and len(partition.replicas) > 1:
                self.consider(partition)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _wanted(self, partition: Partition) -> frozenset[int] | None:
        return partition.wanted_isr(
            now_ms=monotonic_ms(),
            max_lag_ms=self._broker.config.integer("replica.lag.time.max.ms"),
            live=self._broker.image.brokers.keys(),
        )

    async def _propose_all(self) -> None:
        while self._candidates:
            partitions, self._candidates = self._candidates, set()
            proposals: dict[Partition, frozenset[int]] = {}
            for partition in partitions:
                if partition.leadership is not None:
                    # What was proposed and not answered may have been done: it is asked again, as it was.
                    wanted = partition.leadership.proposed or self._wanted(partition)
                    if wanted is not None:
                        proposals[partition] = wanted
                        partition.leadership.propose(wanted)
            if proposals:
                await self._propose_safely(proposals)
                open_ = [
                    each for each in proposals if each.leadership is not None and each.leadership.proposed
                ]
                if open_:
                    await asyncio.sleep(_RETRY_S)
                    self._candidates.update(open_)

    async def _propose_safely(self, proposals: dict[Partition, frozenset[int]]) -> None:
        try:
            await self._propose(proposals)
        except Exception:  # proposals that ended here would never be missed
            logger.exception("proposing who is in sync failed and is tried again")

    async def _propose(self, proposals: dict[Partition, frozenset[int]]) -> None:
        """Ask once. What has no answer still counts, for it may have been done, and stays proposed."""
        try:
            response: AlterPartitionResponse = await self._broker.ask_controller(
                self._request(proposals), VERSION, timeout_s=_TIMEOUT_S
            )
        except (PeerGone, *FAILURES) as error:
            logger.debug("could not propose who is in sync, trying again: %s", error)
            return
        if response.error_code:
            logger.debug("the controller refuses: error %d", response.error_code)
            return
        by_place = {(each.topic_id, each.id.partition): each for each in proposals}
        for topic in response.topics:
            for answer in topic.partitions:
                partition = by_place.get((topic.topic_id, answer.partition_index))
                if partition is not None:
                    self._take(partition, answer)

    def _take(self, partition: Partition, answer: AlterPartitionResponsePartitionData) -> None:
        if answer.error_code in _REFUSED_FOR_GOOD:
            if partition.leadership is not None:
                partition.leadership.withdraw()
            return
        if answer.error_code != ErrorCode.NONE:
            # Somebody else leads, or the state has changed, and the update that says so is on its way; or
            # this was a controller of the past, which does not know the state yet that we have.
            logger.debug("%s: the set in sync was not changed: error %d", partition.id, answer.error_code)
        # Otherwise it is written; the update that says so has all of it, and is on its way.

    def _epoch_of(self, broker_id: int, leadership: Leader) -> int:
        if broker_id == self._broker.broker_id:
            return self._broker.broker_epoch
        follower = leadership.followers.get(broker_id)
        return -1 if follower is None else follower.broker_epoch

    def _request(self, proposals: dict[Partition, frozenset[int]]) -> AlterPartitionRequest:
        by_topic: dict[bytes, list[AlterPartitionRequestPartitionData]] = {}
        for partition, wanted in proposals.items():
            leadership = partition.leadership
            assert leadership is not None, "only leaders propose"
            by_topic.setdefault(partition.topic_id, []).append(
                AlterPartitionRequestPartitionData(
                    partition_index=partition.id.partition,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[
                        BrokerState(broker_id=each, broker_epoch=self._epoch_of(each, leadership))
                        for each in sorted(wanted)
                    ],
                    partition_epoch=partition.version,
                )
            )
        return AlterPartitionRequest(
            broker_id=self._broker.broker_id,
            broker_epoch=self._broker.broker_epoch,
            topics=[
                AlterPartitionRequestTopicData(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_topic.items()
            ],
        )
