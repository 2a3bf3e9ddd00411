"""OffsetForLeaderEpoch (key 23), v2-v4.

Behaviour: returns the largest leader epoch that is not larger than the requested one, and its end offset.
Versions:  v3 replica id; v4 flexible.
"""

from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import offset_for_leader_epoch as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType

_DESCRIBE: Final = on_topics(Operation.DESCRIBE)
_CLUSTER_ACTION: Final = Permission(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)


@handles(ApiKey.OFFSET_FOR_LEADER_EPOCH, range(2, 5), requires=(_DESCRIBE, _CLUSTER_ACTION))
def offset_for_leader_epoch(
    request: api.OffsetForLeaderEpochRequest, context: Context
) -> Steps[api.OffsetForLeaderEpochResponse]:
    topics = []
    for topic in request.topics:
        partitions = yield from each(partial(_answer, topic.topic, context=context), topic.partitions)
        topics.append(api.OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions))
    return api.OffsetForLeaderEpochResponse(topics=topics)


def _answer(topic: str, entry: api.OffsetForLeaderPartition, context: Context) -> api.EpochEndOffset:
    try:
        if not context.may(_CLUSTER_ACTION):  # followers have it
            context.require(_DESCRIBE, topic)
        partition = context.broker.partition(topic, entry.partition)
        partition.ensure_leader(entry.current_leader_epoch)
    except FAILURES as error:
        return api.EpochEndOffset(partition=entry.partition, error_code=error_code(error))
    epoch, end = partition.log.epochs.end_of(entry.leader_epoch, partition.log.log_end_offset)
    return api.EpochEndOffset(partition=entry.partition, leader_epoch=epoch, end_offset=end)
