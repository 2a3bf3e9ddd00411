"""DeleteRecords (key 21), v0-v2.

Behaviour: advances the log start offset of a partition to the given offset; -1 is the high watermark.
Versions:  v2 flexible.
"""

from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_topics
from headrace.broker.slices import Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.schema import delete_records as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_DELETE: Final = on_topics(Operation.DELETE)


@handles(ApiKey.DELETE_RECORDS, range(3), requires=_DELETE)
def delete_records(request: api.DeleteRecordsRequest, context: Context) -> Steps[api.DeleteRecordsResponse]:
    topics = []
    for topic in request.topics:
        partitions = yield from each(partial(_delete, topic.name, context=context), topic.partitions)
        topics.append(api.DeleteRecordsTopicResult(name=topic.name, partitions=partitions))
    return api.DeleteRecordsResponse(topics=topics)


def _delete(
    topic: str, entry: api.DeleteRecordsPartition, context: Context
) -> api.DeleteRecordsPartitionResult:
    try:
        context.require(_DELETE, topic)
        partition = context.broker.partition(topic, entry.partition_index)
        low = partition.delete_records_before(entry.offset)
    except FAILURES as error:
        return api.DeleteRecordsPartitionResult(
            partition_index=entry.partition_index, low_watermark=-1, error_code=error_code(error)
        )
    return api.DeleteRecordsPartitionResult(partition_index=entry.partition_index, low_watermark=low)
