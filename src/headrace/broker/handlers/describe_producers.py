"""DescribeProducers (key 61), v0.

Behaviour: returns the active producers of a replica: their epoch, last sequence and open transaction.
"""

from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.schema import describe_producers as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_READ: Final = on_topics(Operation.READ)


@handles(ApiKey.DESCRIBE_PRODUCERS, range(1), requires=_READ)
def describe_producers(
    request: api.DescribeProducersRequest, context: Context
) -> Steps[api.DescribeProducersResponse]:
    requested: dict[str, dict[int, None]] = {}  # each partition once, even if it is repeated
    for topic in request.topics:
        yield
        requested.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    topics = []
    for name, indexes in requested.items():
        partitions = yield from each(partial(_describe, name, context=context), indexes)
        topics.append(api.TopicResponse(name=name, partitions=partitions))
    return api.DescribeProducersResponse(topics=topics)


def _describe(topic: str, index: int, context: Context) -> api.PartitionResponse:
    try:
        context.require(_READ, topic)
        partition = context.broker.partition(topic, index)
    except FAILURES as error:
        return api.PartitionResponse(partition_index=index, active_producers=(), **error_fields(error))
    producers = [
        api.ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.recent[-1].last_sequence if producer.recent else -1,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=-1 if producer.txn_first_offset is None else producer.txn_first_offset,
        )
        for producer in partition.log.producers
    ]
    return api.PartitionResponse(partition_index=index, active_producers=producers)
