"""CreatePartitions (key 37), v0-v3.

Behaviour: each topic is changed on its own. Records stay in their partitions, but a key may hash to another
           partition from then on. A topic that is named twice is answered once, with INVALID_REQUEST, and
           is not changed.
Versions:  v2 flexible; v3 THROTTLING_QUOTA_EXCEEDED.
"""

from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.mutation_quotas import MutationQuota
from headrace.broker.requests.requirements import on_topics
from headrace.broker.slices import grouped, in_slices, one_by_one
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema import create_partitions as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_ALTER: Final = on_topics(Operation.ALTER)


@handles(ApiKey.CREATE_PARTITIONS, range(4), requires=_ALTER, on_controller=True)
async def create_partitions(
    request: api.CreatePartitionsRequest, context: Context
) -> api.CreatePartitionsResponse:
    await context.broker.session.reconnected(request.timeout_ms)
    by_name = await in_slices(grouped(lambda topic: topic.name, request.topics))
    quota = MutationQuota.of(context, ApiKey.CREATE_PARTITIONS)

    async def grow(topics: list[api.CreatePartitionsTopic]) -> api.CreatePartitionsTopicResult:
        topic = topics[-1]
        assignment = None if topic.assignments is None else [entry.broker_ids for entry in topic.assignments]
        try:
            if len(topics) > 1:
                raise InvalidRequest(f"topic {topic.name!r} is named {len(topics)} times in one request")
            context.require(_ALTER, topic.name)
            await context.broker.topic_admin.add_partitions(
                topic.name, topic.count, assignment, validate_only=request.validate_only, charge=quota.charge
            )
        except FAILURES as error:
            return api.CreatePartitionsTopicResult(name=topic.name, **error_fields(error))
        return api.CreatePartitionsTopicResult(name=topic.name)

    results = await one_by_one(grow, by_name.values())
    return api.CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=results)
