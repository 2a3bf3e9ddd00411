"""OffsetDelete (key 47), v0.

Behaviour: forgets offsets of a group, except of topics that its members subscribe to.
"""

from headrace.broker.dispatch import Context, handles
from headrace.broker.groups import after_commit
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


@handles(ApiKey.OFFSET_DELETE, range(1))
@after_commit
def offset_delete(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    places = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if _exists(topic.name, partition.partition_index, context)
    ]
    try:
        kept = context.broker.groups.shard(request.group_id).decide(
            lambda coordinator, now_ms: coordinator.delete_offsets(request.group_id, places, now_ms)
        )
    except FAILURES as error:
        return OffsetDeleteResponse(error_code=error_code(error), topics=[])
    return OffsetDeleteResponse(
        topics=[_topic(topic, kept, context) for topic in request.topics if topic.partitions]
    )


def _topic(topic: OffsetDeleteRequestTopic, kept: set[str], context: Context) -> OffsetDeleteResponseTopic:
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in kept else ErrorCode.NONE
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index,
                error_code=code
                if _exists(topic.name, each.partition_index, context)
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            for each in topic.partitions
        ],
    )


def _exists(topic: str, partition: int, context: Context) -> bool:
    known = context.broker.image.topics.get(topic)
    return known is not None and partition in known.replicas
