"""OffsetCommit (key 8), v2-v10.

Behaviour: all partitions of a request that can be committed are written together, if the member's generation
           or epoch is the group's; who is in no group commits to an empty one, with generation -1.
Versions:  v2-v4 say how long to keep the offset; v6 leader epochs; v7 static members; v8 flexible; v9 member
           epochs; v10 topics by id.
"""

from collections.abc import Container
from typing import NamedTuple

from headrace.broker.dispatch import Context, handles
from headrace.broker.groups import after_commit
from headrace.broker.translate import FAILURES, error_code
from headrace.group.coordinator import Commit
from headrace.group.offsets import Committed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

_BY_ID = 10
_FOR_EVER = 2**63 - 1


class _Asked(NamedTuple):
    """A topic of a request, and for each partition why its offset cannot be committed, whoever asks."""

    topic: OffsetCommitRequestTopic
    name: str
    problems: list[ErrorCode]


@handles(ApiKey.OFFSET_COMMIT, range(2, 11))
@after_commit
def offset_commit(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse:
    group_error = ErrorCode.NONE
    every = [_asked(topic, context) for topic in request.topics]
    try:
        shard = context.broker.groups.shard(request.group_id)
        commit = Commit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            offsets=_committable(every, request.retention_time_ms, shard.now_ms),
            version=context.version,
        )
        shard.decide(lambda coordinator, now_ms: coordinator.commit(commit, now_ms))
    except FAILURES as error:
        group_error = error_code(error)
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=group_error or problem
                    )
                    for partition, problem in zip(topic.partitions, problems, strict=True)
                ],
            )
            for topic, _, problems in every
            if topic.partitions
        ]
    )


def _asked(topic: OffsetCommitRequestTopic, context: Context) -> _Asked:
    name: str | None = topic.name
    if context.version >= _BY_ID:
        name = context.broker.image.topic_names.get(topic.topic_id)
    if name is None:
        return _Asked(topic, "", [ErrorCode.UNKNOWN_TOPIC_ID] * len(topic.partitions))
    known = context.broker.image.topics.get(name)
    partitions = () if known is None else known.replicas
    limit = context.broker.groups.limits.offset_metadata_max_bytes
    return _Asked(topic, name, [_problem(partition, partitions, limit) for partition in topic.partitions])


def _problem(partition: OffsetCommitRequestPartition, known: Container[int], limit: int) -> ErrorCode:
    if partition.partition_index not in known:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.committed_metadata and len(partition.committed_metadata) > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _committable(every: list[_Asked], keeps_ms: int, now_ms: int) -> list[tuple[str, int, Committed]]:
    expires_ms = -1 if keeps_ms == -1 else min(now_ms + keeps_ms, _FOR_EVER)
    return [
        (
            name,
            partition.partition_index,
            Committed(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms,
                expires_ms,
            ),
        )
        for topic, name, problems in every
        for partition, problem in zip(topic.partitions, problems, strict=True)
        if not problem
    ]
