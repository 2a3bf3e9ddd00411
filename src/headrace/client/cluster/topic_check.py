"""Whether a topic could be made, by asking the cluster: librdkafka tells nothing of what it would be like."""

from collections.abc import Mapping
from typing import Final

from headrace.client.errors import TopicExists
from headrace.client.wire.brokers import Brokers, raise_for
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

_BROKERS_CHOICE: Final = -1


def check_topic(
    brokers: Brokers, name: str, *, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
) -> CreatableTopicResult:
    """What the topic would be, which is not made; TopicExists or a ClientError if it cannot be."""
    topic = CreatableTopic(
        name=name,
        num_partitions=_BROKERS_CHOICE if partitions is None else partitions,
        replication_factor=_BROKERS_CHOICE if replicas is None else replicas,
        assignments=(),
        configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
    )
    answer: CreateTopicsResponse = brokers.any(CreateTopicsRequest(topics=[topic], validate_only=True))
    (found,) = answer.topics
    if found.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        raise TopicExists(name)
    raise_for(found.error_code, found.error_message, name)
    return found
