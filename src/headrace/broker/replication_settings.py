"""What a broker may set about replicas and the controller. Kafka's names and defaults."""

from typing import Final

from headrace.broker.settings import Kind, Scope, Setting

_MANY: Final = 2**31 - 1
_NO_LIMIT: Final = 2**63 - 1


def _number(name: str, default: int, doc: str, low: int, kind: Kind = Kind.INT) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, low=low, high=_MANY)


def _rate(name: str, doc: str) -> Setting:
    scope = Scope.CLUSTER_WIDE
    return Setting(name=name, kind=Kind.LONG, default=_NO_LIMIT, doc=doc, low=0, scope=scope, internal=True)


REPLICATION_SETTINGS: Final = [
    _rate(
        "leader.replication.throttled.rate",
        "How many bytes a second go to throttled replicas that are not in sync yet.",
    ),
    _rate(
        "follower.replication.throttled.rate",
        "How many bytes a second throttled replicas fetch that are not in sync yet.",
    ),
    _number(
        "replica.lag.time.max.ms",
        30_000,
        "How long a follower may lack something the leader has before it is not in sync any more.",
        1,
        Kind.LONG,
    ),
    _number("replica.fetch.wait.max.ms", 500, "How long a follower's fetch waits for something new.", 1),
    _number("replica.fetch.min.bytes", 1, "How much a follower's fetch waits for.", 1),
    _number("replica.fetch.max.bytes", 1024**2, "How much a follower fetches of a partition at a time.", 0),
    _number(
        "replica.fetch.response.max.bytes", 10 * 1024**2, "How much it fetches of all partitions together.", 0
    ),
    Setting(
        name="auto.leader.rebalance.enable",
        kind=Kind.BOOLEAN,
        default=True,
        doc="Whether the controller lets preferred replicas lead again, once too many others do.",
    ),
    _number(
        "leader.imbalance.check.interval.seconds",
        300,
        "How often the controller looks who leads.",
        1,
        Kind.LONG,
    ),
    _number(
        "leader.imbalance.per.broker.percentage",
        10,
        "How many of a broker's preferred partitions others may lead before they are given back.",
        0,
    ),
    Setting(
        name="controlled.shutdown.enable",
        kind=Kind.BOOLEAN,
        default=True,
        doc="Whether a broker that stops has others lead first.",
    ),
    Setting(
        name="replica.selector.class",
        kind=Kind.STRING,
        default=None,
        doc="Whether consumers are sent to a replica in their rack: name a class with RackAware in it.",
    ),
]
