"""OffsetDelete (key 47), v0.

Behaviour: deletes committed offsets of a group, except those of topics that its members subscribe to, which
           are answered with GROUP_SUBSCRIBED_TO_TOPIC.
"""

from collections.abc import Iterator
from typing import Final

from headrace.broker.coordinators.replies import respond_after
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import partitions_once
from headrace.broker.requests.requirements import on_group, on_topics
from headrace.broker.results import Result
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import offset_delete as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_READ_TOPIC: Final = on_topics(Operation.READ)


@handles(ApiKey.OFFSET_DELETE, range(1), requires=(on_group(Operation.DELETE), _READ_TOPIC))
def offset_delete(request: api.OffsetDeleteRequest, context: Context) -> Steps[Result]:
    image = context.broker.image

    def readable(topic: api.OffsetDeleteRequestTopic) -> Iterator[int]:
        if context.may(_READ_TOPIC, topic.name):
            yield from (partition.partition_index for partition in topic.partitions)

    partitions = yield from partitions_once(
        ((topic.name, readable(topic)) for topic in request.topics), lambda id_: image.has_partition(*id_)
    )
    try:
        reply = context.broker.groups.shard(request.group_id).write(
            lambda machine, now_ms: machine.delete_offsets(request.group_id, list(partitions), now_ms)
        )
    except FAILURES as error:
        return Result(api.OffsetDeleteResponse(error_code=error_code(error), topics=[]))

    def build() -> Steps[api.OffsetDeleteResponse]:
        try:
            kept: set[str] = reply.result()
        except FAILURES as error:
            return api.OffsetDeleteResponse(error_code=error_code(error), topics=[])
        topics = []
        for topic in request.topics:
            yield
            if topic.partitions:
                answer = yield from _topic(topic, kept, context)
                topics.append(answer)
        return api.OffsetDeleteResponse(topics=topics)

    return (yield from respond_after([reply], build))


def _topic(
    topic: api.OffsetDeleteRequestTopic, kept: set[str], context: Context
) -> Steps[api.OffsetDeleteResponseTopic]:
    code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if topic.name in kept else ErrorCode.NONE
    denied = None if context.may(_READ_TOPIC, topic.name) else context.denied(_READ_TOPIC, topic.name).code

    def answer(partition: api.OffsetDeleteRequestPartition) -> api.OffsetDeleteResponsePartition:
        index = partition.partition_index
        exists = context.broker.image.has_partition(topic.name, index)
        known = code if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return api.OffsetDeleteResponsePartition(partition_index=index, error_code=denied or known)

    return api.OffsetDeleteResponseTopic(
        name=topic.name, partitions=(yield from each(answer, topic.partitions))
    )
