"""What both brokers are configured with: small limits, and timeouts that a test can wait for."""

from typing import Final

MAX_SIZE: Final = 4
"""The most members of a group, of either kind."""
MAX_METADATA_BYTES: Final = 100
"""The longest text that may go with a committed offset."""
CONSUMER_SESSION_MS: Final = 45_000
"""When a silent member of the new protocol counts as dead: no conversation waits for that."""

ALIKE: Final = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "group.max.session.timeout.ms": "60000",
    "group.max.size": str(MAX_SIZE),
    "group.consumer.max.size": str(MAX_SIZE),
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(CONSUMER_SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "1000",
    "offset.metadata.max.bytes": str(MAX_METADATA_BYTES),
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
}
KAFKA: Final = ALIKE | {
    # One thread of each kind: requests on several connections are taken in the order they were sent.
    "num.network.threads": "1",
    "num.io.threads": "1",
    "group.coordinator.threads": "1",
    # Assignments are made when they are asked for, not some time later.
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.assignor.offload.enable": "false",
    "group.coordinator.append.linger.ms": "0",
}
"""What Apache Kafka also needs to answer the same on every run."""
