"""DeleteTopics (key 20), v1-v6.

Behaviour: each topic is deleted on its own; its records are deleted when the response arrives.
Versions:  v4 flexible; v5 messages, THROTTLING_QUOTA_EXCEEDED; v6 topics by id.
"""

import logging
from functools import partial
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.mutation_quotas import MutationQuota
from headrace.broker.requests.requirements import on_topics
from headrace.broker.slices import one_by_one
from headrace.broker.translate import FAILURES, error_fields
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.message import ZERO_UUID
from headrace.protocol.schema import delete_topics as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType

logger = logging.getLogger(__name__)

_DELETE: Final = on_topics(Operation.DELETE)
_DESCRIBE: Final = on_topics(Operation.DESCRIBE)
_DELETE_ON_CLUSTER: Final = Permission(Operation.DELETE, ResourceType.CLUSTER)


@handles(
    ApiKey.DELETE_TOPICS, range(1, 7), requires=(_DELETE, _DESCRIBE, _DELETE_ON_CLUSTER), on_controller=True
)
async def delete_topics(request: api.DeleteTopicsRequest, context: Context) -> api.DeleteTopicsResponse:
    await context.broker.session.reconnected(request.timeout_ms)
    named = [api.DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    once = {(topic.name, topic.topic_id): topic for topic in [*named, *request.topics]}
    quota = MutationQuota.of(context, ApiKey.DELETE_TOPICS)
    responses = await one_by_one(partial(_delete, context=context, quota=quota), once.values())
    try:
        await context.broker.topic_admin.propagated()  # once for all of them
    except FAILURES as error:
        logger.info("topics are deleted, and not all brokers know that yet: %s", error)
    return api.DeleteTopicsResponse(throttle_time_ms=quota.throttle_ms, responses=responses)


async def _delete(
    topic: api.DeleteTopicState, context: Context, quota: MutationQuota
) -> api.DeletableTopicResult:
    name, topic_id = topic.name, topic.topic_id
    try:
        if name is not None and topic_id != ZERO_UUID:
            raise InvalidRequest("name a topic by its name or by its id, not by both")
        deleted = context.broker.topic_name(topic_id) if name is None else name
        known = context.broker.image.topics.get(deleted)
        # A principal that may not delete the topic learns neither its name nor whether it exists.
        if not context.may(_DELETE_ON_CLUSTER):
            context.require(_DESCRIBE, deleted)
            if known is not None:
                context.require(_DELETE, deleted)
        name = deleted
        topic_id = topic_id if known is None else known.topic_id
        await context.broker.topic_admin.delete(name, quota.charge)
    except FAILURES as error:
        return api.DeletableTopicResult(name=name, topic_id=topic_id, **error_fields(error))
    return api.DeletableTopicResult(name=name, topic_id=topic_id)
