"""OffsetDelete (key 47), v0.

Behaviour: forgets offsets of a group, except of topics that its members subscribe to.
"""

from headrace.broker.dispatch import Context, handles
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
def offset_delete(request: OffsetDeleteRequest, context: Context) -> OffsetDeleteResponse:
    known = context.broker.image.topics
    places = [
        (topic.name, partition.partition_index)
        for topic in request.topics
        if topic.name in known
        for partition in topic.partitions
    ]
    try:
        kept = context.broker.groups.shard(request.group_id).decide(
            lambda coordinator, now_ms: coordinator.delete_offsets(request.group_id, places, now_ms)
        )
    except FAILURES as error:
        return OffsetDeleteResponse(error_code=error_code(error), topics=[])
    return OffsetDeleteResponse(topics=[_topic(topic, kept, context) for topic in request.topics])


def _topic(topic: OffsetDeleteRequestTopic, kept: set[str], context: Context) -> OffsetDeleteResponseTopic:
    code = ErrorCode.NONE
    if topic.name not in context.broker.image.topics:
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif topic.name in kept:
        code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    return OffsetDeleteResponseTopic(
        name=topic.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
            for each in topic.partitions
        ],
    )
