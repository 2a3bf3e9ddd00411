"""A member of the consumer protocol (KIP-848): ConsumerGroupHeartbeat is all it says."""

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Final

from compare.wire import ask, request
from groups.connection import Connection
from groups.membership import RETRY_S, Group, Member, Tally
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import consumer_group_describe as describe
from headrace.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions

REBALANCE_TIMEOUT_MS: Final = 60_000
REJOIN: Final = {ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID}


class ConsumerMember(Member):
    """Takes what it is assigned and gives up what it is not, at once, and says so at once."""

    def __init__(self, group: Group, connection: Connection, tally: Tally) -> None:
        super().__init__(group, connection, tally)
        self._id = str(uuid.uuid4())
        self._interval_s = 5.0
        self._heartbeat = b""

    @property
    def interval_s(self) -> float:
        return self._interval_s

    async def join(self) -> None:
        self.owned = frozenset()
        answer = await self._asked(self._join_request())
        while ErrorCode(answer.error_code).retriable:
            await asyncio.sleep(RETRY_S)
            answer = await self._asked(self._join_request())
        if answer.error_code:
            error = ErrorCode(answer.error_code)
            raise RuntimeError(f"{self.group.name}: {error.name} {answer.error_message}")
        await self._reconcile(answer)

    async def heartbeat(self) -> bool:
        answer = await self.connection.ask_again(ApiKey.CONSUMER_GROUP_HEARTBEAT, self._heartbeat)
        error = self.tally.add(answer)
        if error is ErrorCode.NONE:
            await self._reconcile(answer.message)
        return error not in REJOIN

    async def _reconcile(self, answer: Any) -> None:
        """Follow the coordinator until it has nothing more to say."""
        while answer.error_code == ErrorCode.NONE and self._follow(answer):
            owned = [TopicPartitions(topic_id=self.group.topic.id, partitions=sorted(self.owned))]
            answer = await self._asked(self._request(topic_partitions=owned))

    def _follow(self, answer: Any) -> bool:
        """Take over epoch and assignment; True if the partitions have changed."""
        self._interval_s = answer.heartbeat_interval_ms / 1000
        assigned = self.owned
        if answer.assignment is not None:
            topics = answer.assignment.topic_partitions
            assigned = frozenset(partition for topic in topics for partition in topic.partitions)
        new_epoch, moved = answer.member_epoch != self.generation, assigned != self.owned
        self.generation, self.owned = answer.member_epoch, assigned
        if new_epoch:
            self._heartbeat = request(ApiKey.CONSUMER_GROUP_HEARTBEAT, self._request())
        if new_epoch or moved:
            self.group.changed()
        return moved

    async def _asked(self, body: ConsumerGroupHeartbeatRequest) -> Any:
        return (await self.connection.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, body)).message

    def _join_request(self) -> ConsumerGroupHeartbeatRequest:
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self._id,
            member_epoch=0,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            subscribed_topic_names=[self.group.topic.name],
            topic_partitions=[],
        )

    def _request(
        self, topic_partitions: Sequence[TopicPartitions] | None = None
    ) -> ConsumerGroupHeartbeatRequest:
        """Later heartbeats name only what has changed."""
        return ConsumerGroupHeartbeatRequest(
            group_id=self.group.name,
            member_id=self._id,
            member_epoch=self.generation,
            topic_partitions=topic_partitions,
        )


def living(address: Address, names: Sequence[str]) -> int:
    """How many members the broker says these groups have, in groups that are stable."""
    body = describe.ConsumerGroupDescribeRequest(group_ids=names, include_authorized_operations=False)
    answer = ask(address, body)
    assert isinstance(answer, describe.ConsumerGroupDescribeResponse)
    return sum(len(group.members) for group in answer.groups if group.group_state == "Stable")
