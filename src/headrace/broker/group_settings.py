"""What a broker may set about consumer groups and their offsets. Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings import Kind, Scope, Setting

_MANY: Final = 2**31 - 1


def _number(
    name: str, default: int, doc: str, low: int, *, kind: Kind = Kind.INT, scope: Scope = Scope.READ_ONLY
) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, low=low, high=_MANY, scope=scope)


GROUP_SETTINGS: Final = [
    _number(
        "offsets.topic.num.partitions",
        50,
        "How many partitions __consumer_offsets is made with; groups are spread over them.",
        1,
    ),
    Setting(
        name="offsets.topic.replication.factor",
        kind=Kind.SHORT,
        default=3,
        doc="How many replicas it is made with; if this is not set, no more than there are brokers.",
        low=1,
    ),
    _number("offsets.topic.segment.bytes", 100 * 1024**2, "How large its segments grow.", 1024**2),
    _number(
        "offsets.retention.minutes",
        7 * 24 * 60,
        "How long offsets are kept after the last member of a group has left, or the last commit of a "
        "consumer that is in no group.",
        1,
    ),
    _number(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often to look for offsets to forget.",
        1,
        kind=Kind.LONG,
    ),
    _number("offset.metadata.max.bytes", 4096, "How much a client may say with an offset.", 0),
    _number(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long a new group waits for more members before it begins; `headrace up` makes it 100.",
        0,
    ),
    _number("group.min.session.timeout.ms", 6000, "The shortest session timeout of a classic member.", 1),
    _number("group.max.session.timeout.ms", 1_800_000, "The longest session timeout of a classic member.", 1),
    _number("group.max.size", _MANY, "How many members a classic group may have.", 1),
    _number(
        "group.consumer.session.timeout.ms",
        45_000,
        "How long a member of a consumer group may be silent.",
        1,
    ),
    _number(
        "group.consumer.heartbeat.interval.ms",
        5_000,
        "How often members of consumer groups are told to heartbeat; every second while their group changes.",
        1,
    ),
    _number(
        "group.consumer.min.session.timeout.ms",
        45_000,
        "The shortest that a group may set consumer.session.timeout.ms to.",
        1,
    ),
    _number(
        "group.consumer.max.session.timeout.ms",
        60_000,
        "The longest that a group may set consumer.session.timeout.ms to.",
        1,
    ),
    _number(
        "group.consumer.min.heartbeat.interval.ms",
        5_000,
        "The shortest that a group may set consumer.heartbeat.interval.ms to.",
        1,
    ),
    _number(
        "group.consumer.max.heartbeat.interval.ms",
        15_000,
        "The longest that a group may set consumer.heartbeat.interval.ms to.",
        1,
    ),
    _number("group.consumer.max.size", _MANY, "How many members a consumer group may have.", 1),
    Setting(
        name="group.consumer.assignors",
        kind=Kind.LIST,
        default=("uniform", "range"),
        choices=("uniform", "range"),
        doc="The assignors that members may ask for; the first serves those who ask for none.",
    ),
    Setting(
        name="group.consumer.migration.policy",
        kind=Kind.STRING,
        default="bidirectional",
        choices=("bidirectional", "upgrade", "downgrade", "disabled"),
        doc="Whether a classic group becomes a consumer group when a consumer joins it, and back when the "
        "last one leaves.",
    ),
]
