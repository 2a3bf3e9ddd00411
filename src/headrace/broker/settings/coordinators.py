"""The broker settings of groups, their offsets, and transactions, with Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings.setting import CLUSTER_WIDE, documented, flag, integer, items, long, short, text

_MAX_INT: Final = 2**31 - 1

COORDINATOR_SETTINGS: Final = documented(
    integer("offsets.topic.num.partitions", 50, low=1),
    "The number of partitions of __consumer_offsets when it is created.",
    short("offsets.topic.replication.factor", 3, low=1),
    "The replication factor of __consumer_offsets when it is created; if this is not set, at most the "
    "number of brokers.",
    integer("offsets.topic.segment.bytes", 100 * 1024**2, low=1024**2),
    "The segment.bytes of __consumer_offsets.",
    integer("offsets.retention.minutes", 7 * 24 * 60, low=1),
    "How long committed offsets are kept after a group has become empty or, for a consumer without group "
    "membership, after the last commit.",
    long("offsets.retention.check.interval.ms", 600_000, low=1, high=_MAX_INT),
    "How often the broker checks for expired offsets.",
    integer("offset.metadata.max.bytes", 4096, low=0),
    "The maximum size of the metadata of a committed offset.",
    integer("group.initial.rebalance.delay.ms", 3000, low=0),
    "How long a new classic group waits for more members before its first rebalance; `headrace up` sets 100.",
    integer("group.min.session.timeout.ms", 6000, low=1),
    "The minimum session timeout of a classic member.",
    integer("group.max.session.timeout.ms", 1_800_000, low=1),
    "The maximum session timeout of a classic member.",
    integer("group.max.size", _MAX_INT, low=1),
    "The maximum number of members of a classic group.",
    integer("group.consumer.session.timeout.ms", 45_000, low=1),
    "The session timeout of members of consumer groups.",
    integer("group.consumer.heartbeat.interval.ms", 5_000, low=1),
    "The heartbeat interval of members of consumer groups; one second while the group reconciles.",
    integer("group.consumer.min.session.timeout.ms", 45_000, low=1),
    "The minimum of a group's consumer.session.timeout.ms.",
    integer("group.consumer.max.session.timeout.ms", 60_000, low=1),
    "The maximum of a group's consumer.session.timeout.ms.",
    integer("group.consumer.min.heartbeat.interval.ms", 5_000, low=1),
    "The minimum of a group's consumer.heartbeat.interval.ms.",
    integer("group.consumer.max.heartbeat.interval.ms", 15_000, low=1),
    "The maximum of a group's consumer.heartbeat.interval.ms.",
    integer("group.consumer.max.size", _MAX_INT, low=1),
    "The maximum number of members of a consumer group.",
    items("group.consumer.assignors", ("uniform", "range"), choices=("uniform", "range")),
    "The server-side assignors that members may choose; the first is the default.",
    text(
        "group.consumer.migration.policy",
        "bidirectional",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
    ),
    "Whether a classic group is upgraded when a member with the consumer protocol joins, and downgraded "
    "when the last such member leaves.",
    integer("transaction.state.log.num.partitions", 50, low=1),
    "The number of partitions of __transaction_state when it is created.",
    short("transaction.state.log.replication.factor", 3, low=1),
    "The replication factor of __transaction_state when it is created; if this is not set, at most the "
    "number of brokers.",
    integer("transaction.state.log.min.isr", 2, low=1),
    "The min.insync.replicas of __transaction_state.",
    integer("transaction.state.log.segment.bytes", 100 * 1024**2, low=1),
    "The segment.bytes of __transaction_state.",
    integer("transaction.max.timeout.ms", 15 * 60 * 1000, low=1),
    "The longest transaction.timeout.ms that a producer may ask for.",
    integer("transactional.id.expiration.ms", 7 * 24 * 60 * 60 * 1000, low=1),
    "How long a transactional id is kept after its last transaction.",
    integer("transaction.remove.expired.transaction.cleanup.interval.ms", 60 * 60 * 1000, low=1),
    "How often expired transactional ids are deleted.",
    flag("transaction.partition.verification.enable", True, scope=CLUSTER_WIDE),
    "Whether a leader asks the transaction coordinator before it accepts the first batch of a transaction "
    "from a producer older than Kafka 4.0. Without it a delayed batch can leave a transaction open for "
    "ever.",
    flag("transaction.two.phase.commit.enable", False),
    "Whether producers may have transactions without a timeout (KIP-939), whose outcome an external "
    "coordinator decides.",
)
