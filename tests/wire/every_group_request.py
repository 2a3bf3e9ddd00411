"""Requests about groups that make sense: of a group that is new, or that nobody is in."""

from collections.abc import Callable
from typing import Final

from headrace.protocol.message import Message
from headrace.protocol.schema.consumer_group_describe import ConsumerGroupDescribeRequest
from headrace.protocol.schema.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from headrace.protocol.schema.delete_groups import DeleteGroupsRequest
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.heartbeat import HeartbeatRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from headrace.protocol.schema.leave_group import LeaveGroupRequest, MemberIdentity
from headrace.protocol.schema.list_groups import ListGroupsRequest
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
)
from headrace.protocol.schema.sync_group import SyncGroupRequest
from wire.requests import fresh_name

GroupRequest = Callable[[str, bytes, int], Message]
"""Makes a request from a topic's name, its id, and a version of the API."""


def _commit(name: str, topic_id: bytes, _version: int) -> Message:
    offset = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="here")
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=[offset])
    return OffsetCommitRequest(group_id=fresh_name("group"), member_id="", topics=[topic])


def _offsets(name: str, _topic_id: bytes, version: int) -> Message:
    if version < 8:
        topic = OffsetFetchRequestTopic(name=name, partition_indexes=[0])
        return OffsetFetchRequest(group_id="nobody", topics=[topic])
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="nobody", topics=None)])


def _leave(_name: str, _topic_id: bytes, version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id="nobody", member_id="me")
    return LeaveGroupRequest(group_id="nobody", members=[MemberIdentity(member_id="me")])


def _join(*_: object) -> Message:
    return JoinGroupRequest(
        group_id=fresh_name("group"),
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def _beat(name: str, *_: object) -> Message:
    return ConsumerGroupHeartbeatRequest(
        group_id=fresh_name("group"),
        member_id="me",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[name],
        topic_partitions=[],
    )


def _delete_offsets(name: str, *_: object) -> Message:
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    return OffsetDeleteRequest(
        group_id="nobody", topics=[OffsetDeleteRequestTopic(name=name, partitions=partitions)]
    )


GROUP_REQUESTS: Final[dict[ApiKey, GroupRequest]] = {
    ApiKey.JOIN_GROUP: _join,
    ApiKey.SYNC_GROUP: lambda *_: SyncGroupRequest(
        group_id="nobody",
        generation_id=1,
        member_id="me",
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    ),
    ApiKey.HEARTBEAT: lambda *_: HeartbeatRequest(group_id="nobody", generation_id=1, member_id="me"),
    ApiKey.LEAVE_GROUP: _leave,
    ApiKey.OFFSET_COMMIT: _commit,
    ApiKey.OFFSET_FETCH: _offsets,
    ApiKey.OFFSET_DELETE: _delete_offsets,
    ApiKey.DESCRIBE_GROUPS: lambda *_: DescribeGroupsRequest(groups=["nobody"]),
    ApiKey.LIST_GROUPS: lambda *_: ListGroupsRequest(),
    ApiKey.DELETE_GROUPS: lambda *_: DeleteGroupsRequest(groups_names=["nobody"]),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _beat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: lambda *_: ConsumerGroupDescribeRequest(
        group_ids=["nobody"], include_authorized_operations=True
    ),
}
