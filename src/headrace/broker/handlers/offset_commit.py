"""OffsetCommit (key 8), v2-v10.

Behaviour: all partitions of a request that can be committed are written together, if the member's generation
           or epoch is the group's; who is in no group commits to an empty one, with generation -1.
Versions:  v2-v4 say how long to keep the offset; v6 leader epochs; v7 static members; v8 flexible; v9 member
           epochs; v10 topics by id.
"""

from headrace.broker.dispatch import Context, handles
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


@handles(ApiKey.OFFSET_COMMIT, range(2, 11))
def offset_commit(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse:
    group_error = ErrorCode.NONE
    try:
        shard = context.broker.groups.shard(request.group_id)
        commit = Commit(
            group_id=request.group_id,
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id_or_member_epoch,
            offsets=_committable(request, context, shard.now_ms),
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
                        partition_index=partition.partition_index,
                        error_code=group_error or _problem(topic, partition, context),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
            if topic.partitions
        ]
    )


def _committable(
    request: OffsetCommitRequest, context: Context, now_ms: int
) -> list[tuple[str, int, Committed]]:
    keeps_ms = request.retention_time_ms
    expires_ms = -1 if keeps_ms == -1 else now_ms + keeps_ms
    return [
        (
            _name(topic, context) or "",
            partition.partition_index,
            Committed(
                partition.committed_offset,
                partition.committed_leader_epoch,
                partition.committed_metadata or "",
                now_ms,
                expires_ms,
            ),
        )
        for topic in request.topics
        for partition in topic.partitions
        if not _problem(topic, partition, context)
    ]


def _problem(
    topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition, context: Context
) -> ErrorCode:
    """Why the offset of this partition cannot be committed, whoever asks."""
    name = _name(topic, context)
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    known = context.broker.image.topics.get(name)
    if known is None or partition.partition_index not in known.replicas:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    limit = context.broker.groups.limits.offset_metadata_max_bytes
    if len(partition.committed_metadata or "") > limit:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.NONE


def _name(topic: OffsetCommitRequestTopic, context: Context) -> str | None:
    if context.version < _BY_ID:
        return topic.name
    return context.broker.image.topic_names.get(topic.topic_id)
