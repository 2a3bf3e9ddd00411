"""kafka-python's clients, imported here so that nobody hears how it opens its schema files."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas the way of Python 3.8
    from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
    from kafka.errors import (
        KafkaError,
        MessageSizeTooLargeError,
        TopicAlreadyExistsError,
        TopicAuthorizationFailedError,
        UnknownTopicOrPartitionError,
    )
    from kafka.structs import OffsetAndMetadata

__all__ = [
    "ConfigResource",
    "ConfigResourceType",
    "KafkaAdminClient",
    "KafkaConsumer",
    "KafkaError",
    "KafkaProducer",
    "MessageSizeTooLargeError",
    "NewPartitions",
    "NewTopic",
    "OffsetAndMetadata",
    "TopicAlreadyExistsError",
    "TopicAuthorizationFailedError",
    "TopicPartition",
    "UnknownTopicOrPartitionError",
]
