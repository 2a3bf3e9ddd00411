"""What kafka-python has for groups, imported here so that nobody hears how it opens its schema files."""

import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it loads its schemas the way of Python 3.8
    from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
    from kafka.errors import (
        CommitFailedError,
        FencedInstanceIdError,
        KafkaConnectionError,
        KafkaError,
        NoOffsetForPartitionError,
    )

__all__ = [
    "CommitFailedError",
    "ConsumerRebalanceListener",
    "CooperativeStickyAssignor",
    "FencedInstanceIdError",
    "KafkaConnectionError",
    "KafkaConsumer",
    "KafkaError",
    "NoOffsetForPartitionError",
    "OffsetAndMetadata",
    "RangePartitionAssignor",
    "RoundRobinPartitionAssignor",
    "StickyPartitionAssignor",
    "TopicPartition",
]
