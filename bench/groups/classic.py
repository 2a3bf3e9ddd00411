"""A member of the classic protocol: JoinGroup, SyncGroup, Heartbeat. The leader assigns ranges."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

from compare.wire import ask, request
from groups.connection import Connection
from groups.membership import RETRY_S, Group, Member, Tally, Topic
from headrace.client.wire.connection import Address
from headrace.protocol.api import ApiKey
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import describe_groups, heartbeat, join_group, sync_group
from headrace.protocol.schema.consumer_protocol_assignment import TopicPartition

INTERVAL_S: Final = 3.0  # what every client has as heartbeat.interval.ms
SESSION_TIMEOUT_MS: Final = 10_000  # short, so that a broker that falls behind loses members within a run
REBALANCE_TIMEOUT_MS: Final = 60_000
VERSION: Final = 1  # of subscriptions and assignments
REJOIN: Final = {ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID}


class ClassicMember(Member):
    def __init__(self, group: Group, connection: Connection, tally: Tally) -> None:
        super().__init__(group, connection, tally)
        self._id = ""
        self._heartbeat = b""

    @property
    def interval_s(self) -> float:
        return INTERVAL_S

    async def join(self) -> None:
        synced = False
        while not synced:
            synced = await self._sync(await self._joined())
        body = heartbeat.HeartbeatRequest(
            group_id=self.group.name, generation_id=self.generation, member_id=self._id
        )
        self._heartbeat = request(ApiKey.HEARTBEAT, body)

    async def heartbeat(self) -> bool:
        error = self.tally.add(await self.connection.ask_again(ApiKey.HEARTBEAT, self._heartbeat))
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            self._id = ""
        return error not in REJOIN

    async def _joined(self) -> join_group.JoinGroupResponse:
        while True:
            answer: join_group.JoinGroupResponse
            answer = (await self.connection.ask(ApiKey.JOIN_GROUP, self._join_request())).message
            error = ErrorCode(answer.error_code)
            if error is ErrorCode.NONE:
                self._id = answer.member_id
                return answer
            if error.retriable:
                await asyncio.sleep(RETRY_S)
            elif error is ErrorCode.MEMBER_ID_REQUIRED:
                self._id = answer.member_id
            elif error is ErrorCode.UNKNOWN_MEMBER_ID:
                self._id = ""
            else:
                raise RuntimeError(f"JoinGroup of {self.group.name}: {error.name}")

    def _join_request(self) -> join_group.JoinGroupRequest:
        subscription = ConsumerProtocolSubscription(topics=[self.group.topic.name])
        metadata = encode_subscription(subscription, VERSION)
        return join_group.JoinGroupRequest(
            group_id=self.group.name,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            member_id=self._id,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )

    async def _sync(self, joined: join_group.JoinGroupResponse) -> bool:
        """Hand out assignments if this is the leader, and take our own; False if that came too late."""
        members = [member.member_id for member in joined.members]
        body = sync_group.SyncGroupRequest(
            group_id=self.group.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=joined.protocol_type,
            protocol_name=joined.protocol_name,
            assignments=list(_assignments(self.group.topic, members)),
        )
        answer: Any = (await self.connection.ask(ApiKey.SYNC_GROUP, body)).message
        error = ErrorCode(answer.error_code)
        if error in REJOIN:
            return False
        if error:
            raise RuntimeError(f"SyncGroup of {self.group.name}: {error.name}")
        self.generation = joined.generation_id
        assigned = decode_assignment(answer.assignment).assigned_partitions
        self.owned = frozenset(partition for topic in assigned for partition in topic.partitions)
        return True


def _assignments(topic: Topic, members: Sequence[str]) -> Iterator[sync_group.SyncGroupRequestAssignment]:
    """A range of the topic for each member; nothing if there are none, as for all but the leader."""
    for number, member in enumerate(sorted(members)):
        first, stop = (topic.partitions * each // len(members) for each in (number, number + 1))
        mine = TopicPartition(topic=topic.name, partitions=range(first, stop))
        data = encode_assignment(ConsumerProtocolAssignment(assigned_partitions=[mine]), VERSION)
        yield sync_group.SyncGroupRequestAssignment(member_id=member, assignment=data)


def living(address: Address, names: Sequence[str]) -> int:
    """How many members the broker says these groups have, in groups that are stable."""
    answer = ask(address, describe_groups.DescribeGroupsRequest(groups=names))
    assert isinstance(answer, describe_groups.DescribeGroupsResponse)
    return sum(len(group.members) for group in answer.groups if group.group_state == "Stable")
