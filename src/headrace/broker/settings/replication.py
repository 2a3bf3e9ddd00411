"""The broker settings of replication and the controller, with Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings.setting import Kind, Scope, Setting

_MAX_INT: Final = 2**31 - 1
_NO_LIMIT: Final = 2**63 - 1


def _number(name: str, default: int, doc: str, low: int, kind: Kind = Kind.INT) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, low=low, high=_MAX_INT)


def _rate(name: str, doc: str) -> Setting:
    scope = Scope.CLUSTER_WIDE
    return Setting(name=name, kind=Kind.LONG, default=_NO_LIMIT, doc=doc, low=0, scope=scope, internal=True)


REPLICATION_SETTINGS: Final = [
    _rate(
        "leader.replication.throttled.rate",
        "The bytes per second that the leader sends to throttled replicas outside the ISR.",
    ),
    _rate(
        "follower.replication.throttled.rate",
        "The bytes per second that throttled replicas outside the ISR fetch.",
    ),
    _number(
        "replica.lag.time.max.ms",
        30_000,
        "A follower that has not caught up to the leader's log end offset for this time is removed from the "
        "ISR.",
        1,
        Kind.LONG,
    ),
    _number("replica.fetch.wait.max.ms", 500, "The maximum wait of a follower's Fetch request.", 1),
    _number("replica.fetch.min.bytes", 1, "The minimum bytes of a response to a follower's Fetch.", 1),
    _number("replica.fetch.max.bytes", 1024**2, "The maximum bytes of a partition in a follower's Fetch.", 0),
    _number(
        "replica.fetch.response.max.bytes",
        10 * 1024**2,
        "The maximum bytes of a response to a follower's Fetch.",
        0,
    ),
    Setting(
        name="auto.leader.rebalance.enable",
        kind=Kind.BOOLEAN,
        default=True,
        doc="Whether the controller triggers preferred leader elections when leaders are imbalanced.",
    ),
    _number(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller checks for leader imbalance.",
        1,
        Kind.LONG,
    ),
    _number(
        "leader.imbalance.per.broker.percentage",
        10,
        "The percentage of a broker's preferred partitions with another leader that triggers an election.",
        0,
    ),
    _number(
        "headrace.in.doubt.wait.ms",
        120_000,
        "If every live replica of a partition that could lead may have lost records in a crash, how long the "
        "controller waits for the other replicas before it elects the one with the most records. A majority "
        "of the replicas is waited for without a limit.",
        0,
        Kind.LONG,
    ),
    Setting(
        name="controlled.shutdown.enable",
        kind=Kind.BOOLEAN,
        default=True,
        doc="Whether a broker moves its leaderships to other brokers before it stops.",
    ),
    Setting(
        name="replica.selector.class",
        kind=Kind.STRING,
        default=None,
        doc="A class name that contains RackAware lets consumers fetch from a replica in their rack.",
    ),
]
