"""CreateTopics (key 19), v2-v7.

Behaviour: each topic is created on its own, whether the others are refused or not. Clients can use it when
           the response arrives.
Versions:  v4 -1 partitions or replicas means the broker's default; v5 flexible, configs in the response; v6
           THROTTLING_QUOTA_EXCEEDED; v7 topic ids. Without DESCRIBE_CONFIGS the response does not have the
           configs (KIP-525).
"""

import logging
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.mutation_quotas import MutationQuota
from headrace.broker.requests.requirements import on_topics
from headrace.broker.settings.describe import describe_topic
from headrace.broker.slices import Turns, grouped, in_slices
from headrace.broker.translate import FAILURES, error_fields
from headrace.coordination.znodes import TopicAssignment
from headrace.protocol.errors import ErrorCode
from headrace.protocol.kafka_errors import InvalidReplicaAssignment, InvalidRequest
from headrace.protocol.schema import create_topics as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.placement import check_partitions
from headrace.security.authorization import Operation, Permission, ResourceType

logger = logging.getLogger(__name__)

_CREATE: Final = on_topics(Operation.CREATE)
_CREATE_ON_CLUSTER: Final = Permission(Operation.CREATE, ResourceType.CLUSTER)
CREATE: Final = (_CREATE, _CREATE_ON_CLUSTER)
"""Either of these permissions suffices to create a topic."""
_DESCRIBE_CONFIGS: Final = on_topics(Operation.DESCRIBE_CONFIGS)


@handles(ApiKey.CREATE_TOPICS, range(2, 8), requires=(*CREATE, _DESCRIBE_CONFIGS), on_controller=True)
async def create_topics(request: api.CreateTopicsRequest, context: Context) -> api.CreateTopicsResponse:
    await context.broker.session.reconnected(request.timeout_ms)
    by_name = await in_slices(grouped(lambda topic: topic.name, request.topics))
    results, turns = [], Turns()
    quota = MutationQuota.of(context, ApiKey.CREATE_TOPICS)
    for topics in by_name.values():
        topic = topics[-1]
        try:
            if len(topics) > 1:
                raise InvalidRequest(f"topic {topic.name!r} is named twice in one request")
            require_create(topic.name, context)
            created = await _create(topic, request, context, quota)
        except FAILURES as error:
            results.append(api.CreatableTopicResult(name=topic.name, configs=None, **error_fields(error)))
        else:
            results.append(_made(created, topic, context))
        await turns.next()
    try:
        # Once for all of them: brokers create the partitions of one update together.
        await context.broker.topic_admin.propagated()
    except FAILURES as error:
        logger.info("topics are created, and not known to all brokers yet: %s", error)
    return api.CreateTopicsResponse(throttle_time_ms=quota.throttle_ms, topics=results)


def require_create(topic: str, context: Context) -> None:
    """Raise AuthorizationFailed without CREATE on the cluster or on the topic."""
    if not context.may(_CREATE_ON_CLUSTER):
        context.require(_CREATE, topic)


async def _create(
    topic: api.CreatableTopic, request: api.CreateTopicsRequest, context: Context, quota: MutationQuota
) -> TopicAssignment:
    if topic.assignments:
        check_partitions(len(topic.assignments))
    assignment = {entry.partition_index: entry.broker_ids for entry in topic.assignments}
    if len(assignment) != len(topic.assignments):
        raise InvalidReplicaAssignment("a partition is assigned twice")
    return await context.broker.topic_admin.create(
        topic.name,
        partitions=topic.num_partitions,
        replicas=topic.replication_factor,
        assignment=assignment,
        configs={config.name: config.value for config in topic.configs},
        validate_only=request.validate_only,
        charge=quota.charge,
    )


def _made(created: TopicAssignment, topic: api.CreatableTopic, context: Context) -> api.CreatableTopicResult:
    if not context.may(_DESCRIBE_CONFIGS, created.topic):
        return api.CreatableTopicResult(
            name=created.topic,
            topic_id=created.topic_id,
            topic_config_error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            configs=None,
        )
    own = {config.name: config.value for config in topic.configs if config.value is not None}
    return api.CreatableTopicResult(
        name=created.topic,
        topic_id=created.topic_id,
        num_partitions=len(created.replicas),
        replication_factor=len(created.replicas[0]),
        configs=[
            api.CreatableTopicConfigs(
                name=entry.name,
                value=entry.value,
                read_only=False,
                config_source=entry.source,
                is_sensitive=False,
            )
            for entry in describe_topic(context.broker.config, own)
        ],
    )
