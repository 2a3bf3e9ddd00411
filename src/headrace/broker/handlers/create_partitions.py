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
from headrace.broker.slices import Turns, grouped, in_slices
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_ALTER: Final = on_topics(Operation.ALTER)


@handles(ApiKey.CREATE_PARTITIONS, range(4), requires=_ALTER, on_controller=True)
async def create_partitions(request: CreatePartitionsRequest, context: Context) -> CreatePartitionsResponse:
    await context.broker.session.reconnected(request.timeout_ms)
    by_name = await in_slices(grouped(lambda topic: topic.name, request.topics))
    results, turns = [], Turns()
    quota = MutationQuota.of(context, ApiKey.CREATE_PARTITIONS)
    for topics in by_name.values():
        results.append(
            await _grow(topics[-1], len(topics), context, quota, validate_only=request.validate_only)
        )
        await turns.next()
    return CreatePartitionsResponse(throttle_time_ms=quota.throttle_ms, results=results)


async def _grow(
    topic: CreatePartitionsTopic,
    times_named: int,
    context: Context,
    quota: MutationQuota,
    *,
    validate_only: bool,
) -> CreatePartitionsTopicResult:
    assignment = None if topic.assignments is None else [entry.broker_ids for entry in topic.assignments]
    try:
        if times_named > 1:
            raise InvalidRequest(f"topic {topic.name!r} is named {times_named} times in one request")
        context.require(_ALTER, topic.name)
        await context.broker.topic_admin.add_partitions(
            topic.name, topic.count, assignment, validate_only=validate_only, charge=quota.charge
        )
    except FAILURES as error:
        return CreatePartitionsTopicResult(
            name=topic.name, error_code=error_code(error), error_message=error_message(error)
        )
    return CreatePartitionsTopicResult(name=topic.name)
