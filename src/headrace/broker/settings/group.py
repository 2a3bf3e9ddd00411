"""The broker settings of groups and their offsets, with Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings.setting import Kind, Scope, Setting

_MAX_INT: Final = 2**31 - 1


def _number(
    name: str, default: int, doc: str, low: int, *, kind: Kind = Kind.INT, scope: Scope = Scope.READ_ONLY
) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, low=low, high=_MAX_INT, scope=scope)


GROUP_SETTINGS: Final = [
    _number(
        "offsets.topic.num.partitions",
        50,
        "The number of partitions of __consumer_offsets when it is created.",
        1,
    ),
    Setting(
        name="offsets.topic.replication.factor",
        kind=Kind.SHORT,
        default=3,
        doc="The replication factor of __consumer_offsets when it is created; if this is not set, at most "
        "the number of brokers.",
        low=1,
    ),
    _number(
        "offsets.topic.segment.bytes", 100 * 1024**2, "The segment.bytes of __consumer_offsets.", 1024**2
    ),
    _number(
        "offsets.retention.minutes",
        7 * 24 * 60,
        "How long committed offsets are kept after a group has become empty or, for a consumer without group "
        "membership, after the last commit.",
        1,
    ),
    _number(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often the broker checks for expired offsets.",
        1,
        kind=Kind.LONG,
    ),
    _number("offset.metadata.max.bytes", 4096, "The maximum size of the metadata of a committed offset.", 0),
    _number(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long a new classic group waits for more members before its first rebalance; `headrace up` sets "
        "100.",
        0,
    ),
    _number("group.min.session.timeout.ms", 6000, "The minimum session timeout of a classic member.", 1),
    _number("group.max.session.timeout.ms", 1_800_000, "The maximum session timeout of a classic member.", 1),
    _number("group.max.size", _MAX_INT, "The maximum number of members of a classic group.", 1),
    _number(
        "group.consumer.session.timeout.ms", 45_000, "The session timeout of members of consumer groups.", 1
    ),
    _number(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        "The heartbeat interval of members of consumer groups; one second while the group reconciles.",
        1,
    ),
    _number(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "The minimum of a group's consumer.session.timeout.ms.",
        1,
    ),
    _number(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "The maximum of a group's consumer.session.timeout.ms.",
        1,
    ),
    _number(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "The minimum of a group's consumer.heartbeat.interval.ms.",
        1,
    ),
    _number(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "The maximum of a group's consumer.heartbeat.interval.ms.",
        1,
    ),
    _number("group.consumer.max.size", _MAX_INT, "The maximum number of members of a consumer group.", 1),
    Setting(
        name="group.consumer.assignors",
        kind=Kind.LIST,
        default=("uniform", "range"),
        choices=("uniform", "range"),
        doc="The server-side assignors that members may choose; the first is the default.",
    ),
    Setting(
        name="group.consumer.migration.policy",
        kind=Kind.STRING,
        default="bidirectional",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        doc="Whether a classic group is upgraded when a member with the consumer protocol joins, and "
        "downgraded when the last such member leaves.",
    ),
]
