"""OffsetFetch (key 9), v1-v10.

Behaviour: what groups have committed; -1 where they have not. A member of a consumer group that names its
           epoch is refused if that is not the present one.
Versions:  v2 all topics; v5 leader epochs; v6 flexible; v7 stable offsets only; v8 several groups; v9 member
           epochs; v10 topics by id.
Not yet:   transactions, so every offset is stable.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from headrace.broker.dispatch import Context, handles
from headrace.broker.groups import after_commit
from headrace.broker.translate import FAILURES, error_code
from headrace.group.offsets import Committed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

_TOP_LEVEL_ERROR, _SEVERAL_GROUPS, _BY_ID = 2, 8, 10
_NONE = Committed(-1, -1, "", -1)
_Offsets = Mapping[tuple[str, int], Committed]


class _Wanted(NamedTuple):
    """A topic that is asked for, and what is wrong with that."""

    name: str
    topic_id: bytes
    partitions: Sequence[int]
    problem: ErrorCode = ErrorCode.NONE


@handles(ApiKey.OFFSET_FETCH, range(1, 11))
@after_commit
def offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    if context.version >= _SEVERAL_GROUPS:
        return OffsetFetchResponse(groups=[_group(group, context) for group in request.groups])
    return _one_group(request, context)


def _group(group: OffsetFetchRequestGroup, context: Context) -> OffsetFetchResponseGroup:
    try:
        offsets = _offsets(group.group_id, group.member_id, group.member_epoch, context)
    except FAILURES as error:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error_code(error))
    if group.topics is None:
        wanted = _all(offsets, context)
    else:
        wanted = [_by_id(topic, context) for topic in group.topics]
    topics = [
        OffsetFetchResponseTopics(
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                OffsetFetchResponsePartitions(
                    partition_index=index,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    metadata=found.metadata,
                    error_code=topic.problem,
                )
                for index in topic.partitions
                for found in (_NONE if topic.problem else offsets.get((topic.name, index), _NONE),)
            ],
        )
        for topic in wanted
    ]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _one_group(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse:
    offsets: _Offsets = {}
    code = ErrorCode.NONE
    try:
        offsets = _offsets(request.group_id, None, -1, context)
    except FAILURES as error:
        code = error_code(error)
    if code and context.version >= _TOP_LEVEL_ERROR:
        return OffsetFetchResponse(error_code=code)
    wanted = _all(offsets, context) if request.topics is None else [_by_name(each) for each in request.topics]
    topics = [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=index,
                    committed_offset=found.offset,
                    committed_leader_epoch=found.leader_epoch,
                    metadata=found.metadata,
                    error_code=code,
                )
                for index in topic.partitions
                for found in (offsets.get((topic.name, index), _NONE),)
            ],
        )
        for topic in wanted
    ]
    return OffsetFetchResponse(topics=topics)


def _offsets(group_id: str, member_id: str | None, epoch: int, context: Context) -> _Offsets:
    coordinator = context.broker.groups.shard(group_id).coordinator
    coordinator.check_fetch(group_id, member_id, epoch)
    return coordinator.offsets.of(group_id)


def _all(offsets: _Offsets, context: Context) -> list[_Wanted]:
    """Every topic that the group has offsets of; by id, only those that exist can be named."""
    topics = context.broker.image.topics
    wanted = [
        _Wanted(name, topics[name].topic_id if name in topics else b"", [index for _, index in places])
        for name, places in groupby(sorted(offsets), key=lambda place: place[0])
    ]
    if context.version < _BY_ID:
        return wanted
    return [topic for topic in wanted if topic.topic_id]


def _by_name(topic: OffsetFetchRequestTopic) -> _Wanted:
    return _Wanted(topic.name, b"", topic.partition_indexes)


def _by_id(topic: OffsetFetchRequestTopics, context: Context) -> _Wanted:
    if context.version < _BY_ID:
        return _Wanted(topic.name, b"", topic.partition_indexes)
    name = context.broker.image.topic_names.get(topic.topic_id)
    if name is None:
        return _Wanted("", topic.topic_id, topic.partition_indexes, ErrorCode.UNKNOWN_TOPIC_ID)
    return _Wanted(name, topic.topic_id, topic.partition_indexes)
