"""The broker settings, with Kafka's names and defaults."""

from dataclasses import replace
from typing import Final

from headrace.broker.settings.coordinators import COORDINATOR_SETTINGS
from headrace.broker.settings.security import SECURITY_SETTINGS, ZOOKEEPER_SETTINGS
from headrace.broker.settings.setting import (
    CLUSTER_WIDE,
    PER_BROKER,
    Setting,
    Settings,
    documented,
    double,
    flag,
    integer,
    items,
    java_class,
    long,
    text,
)
from headrace.broker.settings.topic import BROKER_SYNONYMS, TOPIC_SETTINGS
from headrace.broker.settings.without_effect import settings_without_effect
from headrace.storage.config import DAY_MS, NEVER

_LISTENER_PREFIX: Final = "listener.name."

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

COARSER: Final = {
    "log.retention.ms": {"log.retention.minutes": MINUTE_MS, "log.retention.hours": HOUR_MS},
    "log.roll.ms": {"log.roll.hours": HOUR_MS},
    "log.roll.jitter.ms": {"log.roll.jitter.hours": HOUR_MS},
    "log.flush.interval.ms": {"log.flush.scheduler.interval.ms": 1},
}
"""For each setting in ms, the settings in coarser units, with the unit in ms. The first that is set wins."""


_NO_LIMIT: Final = 2**63 - 1
_MAX_INT: Final = 2**31 - 1

_DECLARED: Final = documented(
    integer("broker.id", 0, low=0),
    "The id of this broker, unique in the cluster.",
    integer("node.id", low=0),
    "The same as broker.id; if both are set, they must be equal.",
    items("process.roles", (), choices=("broker", "controller")),
    "Must contain broker. No effect beyond that: every broker can be elected controller.",
    text("broker.rack"),
    "The rack of this broker; replicas are spread over racks.",
    text("headrace.node"),
    "The name of the machine of this broker, for brokers that share one: replicas of a partition are "
    "spread over racks, then over nodes. Without a name the broker counts as a node of its own. With "
    "several headrace.brokers the default is node-<broker.id>.",
    text("headrace.brokers", "1", form="auto|[1-9][0-9]?|100", example="auto, or a number from 1 to 100"),
    "How many brokers `headrace broker` runs, each a process that uses one core: a number, or auto for "
    "one per CPU and at least one per log directory. docs/clusters.md has the rule by which the ids, "
    "ports and directories of the brokers are derived.",
    items("log.dirs", ("headrace-data",)),
    "The directories of the logs. A broker uses one; several are spread over headrace.brokers.",
    items("log.dir"),
    "The same as log.dirs, which takes precedence.",
    items("listeners", ("PLAINTEXT://:9092",)),
    "The addresses to listen on: NAME://HOST:PORT.",
    items("advertised.listeners", ()),
    "The addresses that clients connect to, if they differ from `listeners`.",
    text(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        scope=PER_BROKER,
    ),
    "The security protocol of each listener name: NAME:PROTOCOL.",
    text("inter.broker.listener.name"),
    "The listener for connections between brokers; by default the first one with "
    "security.inter.broker.protocol.",
    integer("num.partitions", 1, low=1),
    "The default number of partitions of a topic.",
    integer("default.replication.factor", 1, low=1),
    "The default replication factor of a topic.",
    flag("auto.create.topics.enable", True),
    "Whether a Metadata request creates the topics that it names.",
    flag("delete.topic.enable", True),
    "Whether topics can be deleted.",
    integer("socket.request.max.bytes", 100 * 1024**2, low=1),
    "The maximum size of a request.",
    long("queued.max.request.bytes", 256 * 1024**2, low=1),
    "The maximum size of all requests that are queued or processed, over all connections.",
    integer("max.connections", 10_000, low=0, scope=CLUSTER_WIDE),
    "The maximum number of connections.",
    integer("max.connections.per.ip", 10_000, low=0, scope=CLUSTER_WIDE),
    "The maximum number of connections from one IP address.",
    text("max.connections.per.ip.overrides", "", scope=CLUSTER_WIDE),
    "Overrides of max.connections.per.ip: ADDRESS:COUNT,…; host names are not resolved.",
    integer("max.request.partition.size.limit", 2000, low=1),
    "The maximum number of partitions in a DescribeTopicPartitions response.",
    long("connections.max.idle.ms", 600_000, low=1),
    "An idle connection is closed after this time.",
    integer("fetch.max.bytes", 55 * 1024**2, low=1024),
    "The maximum size of a Fetch response.",
    integer("max.incremental.fetch.session.cache.slots", 1000, low=0),
    "The maximum number of incremental fetch sessions. A session that is unused for two minutes may be "
    "evicted.",
    long("log.retention.check.interval.ms", 300_000, low=1),
    "How often the broker checks for segments that retention deletes.",
    long("replica.high.watermark.checkpoint.interval.ms", 5_000, low=1),
    "How often the high watermarks are checkpointed to disk.",
    flag("log.cleaner.enable", True),
    "Whether the log cleaner runs, which compacts topics with cleanup.policy=compact.",
    integer("log.cleaner.threads", 1, low=0, scope=CLUSTER_WIDE),
    "0 pauses the log cleaner; with any other number it compacts one log at a time.",
    long("log.cleaner.backoff.ms", 15_000, low=0, scope=CLUSTER_WIDE),
    "How long an idle log cleaner waits before it looks for logs to compact.",
    long("log.cleaner.dedupe.buffer.size", 128 * 1024**2, low=1024, scope=CLUSTER_WIDE),
    "The memory that the log cleaner may use for deduplication.",
    double("log.cleaner.io.max.bytes.per.second", 32.0 * 1024**2, low=1, scope=CLUSTER_WIDE),
    "The maximum rate at which the log cleaner reads.",
    double("log.scrub.io.max.bytes.per.second", 1024.0**2, low=0, scope=CLUSTER_WIDE),
    "The rate at which closed segments are read to find damage before a consumer does; 0: never.",
    long("log.scrub.interval.ms", 3600 * 1000, low=100),
    "How long the scrub of closed segments pauses after it has read all of them.",
    integer("producer.id.expiration.ms", DAY_MS, low=1, scope=CLUSTER_WIDE),
    "The state of an idle producer id expires after this time.",
    integer("headrace.max.producer.ids.per.partition", 20_000, low=1, scope=CLUSTER_WIDE),
    "How many producer ids a partition remembers. A new one replaces the one that has not written for "
    "longest, unless that one has written lately: then the new one is refused.",
    integer("headrace.max.producer.ids", 500_000, low=1),
    "How many producer ids all partitions of a broker remember together. Beyond it, a partition with "
    "1,000 or more replaces its own.",
    integer("headrace.producer.id.live.ms", 10 * 60 * 1000, low=0, scope=CLUSTER_WIDE),
    "For how long after its last write a producer id is not replaced by a new one. It should be longer "
    "than the delivery.timeout.ms of all producers.",
    integer("log.retention.minutes", low=-1),
    "The retention time if log.retention.ms is not set; -1: unlimited.",
    integer("log.retention.hours", 168, low=-1),
    "The retention time if neither log.retention.ms nor log.retention.minutes is set; -1: unlimited.",
    integer("log.roll.hours", 168, low=1),
    "The age at which a segment is rolled if log.roll.ms is not set.",
    integer("log.roll.jitter.hours", 0, low=0),
    "No effect: segments are rolled without jitter.",
    long("log.flush.scheduler.interval.ms", NEVER),
    "The flush interval if log.flush.interval.ms is not set.",
    flag("unstable.api.versions.enable", False, internal=True),
    "Whether clients may use versions of APIs that Kafka may still change: InitProducerId v6, with two- "
    "phase commit (KIP-939).",
    integer("quota.window.num", 11, low=1),
    "The number of samples that rates of client quotas are measured over.",
    integer("quota.window.size.seconds", 1, low=1),
    "The duration of such a sample.",
    integer("controller.quota.window.num", 11, low=1),
    "The number of samples whose controller mutations a client may make in one burst.",
    integer("controller.quota.window.size.seconds", 1, low=1),
    "The duration of such a sample.",
    integer("max.connection.creation.rate", 2**31 - 1, low=0, scope=CLUSTER_WIDE),
    "The maximum number of new connections per second. More wait for up to quota.window.size.seconds, and "
    "are closed if that is not enough.",
    long("leader.replication.throttled.rate", _NO_LIMIT, low=0, scope=CLUSTER_WIDE, internal=True),
    "The bytes per second that the leader sends to throttled replicas outside the ISR.",
    long("follower.replication.throttled.rate", _NO_LIMIT, low=0, scope=CLUSTER_WIDE, internal=True),
    "The bytes per second that throttled replicas outside the ISR fetch.",
    long("replica.lag.time.max.ms", 30_000, low=1, high=_MAX_INT),
    "A follower that has not caught up to the leader's log end offset for this time is removed from the ISR.",
    integer("replica.fetch.wait.max.ms", 500, low=1),
    "The maximum wait of a follower's Fetch request.",
    integer("replica.fetch.min.bytes", 1, low=1),
    "The minimum bytes of a response to a follower's Fetch.",
    integer("replica.fetch.max.bytes", 1024**2, low=0),
    "The maximum bytes of a partition in a follower's Fetch.",
    integer("replica.fetch.response.max.bytes", 10 * 1024**2, low=0),
    "The maximum bytes of a response to a follower's Fetch.",
    flag("auto.leader.rebalance.enable", True),
    "Whether the controller triggers preferred leader elections when leaders are imbalanced.",
    long("leader.imbalance.check.interval.seconds", 300, low=1, high=_MAX_INT),
    "How often the controller checks for leader imbalance.",
    integer("leader.imbalance.per.broker.percentage", 10, low=0),
    "The percentage of a broker's preferred partitions with another leader that triggers an election.",
    long("headrace.in.doubt.wait.ms", 120_000, low=0, high=_MAX_INT),
    "If every live replica of a partition that could lead may have lost records in a crash, how long the "
    "controller waits for the other replicas before it elects the one with the most records. A majority "
    "of the replicas is waited for without a limit.",
    flag("controlled.shutdown.enable", True),
    "Whether a broker moves its leaderships to other brokers before it stops.",
    text("replica.selector.class"),
    "A class name that contains RackAware lets consumers fetch from a replica in their rack.",
    text("http.listener", ""),
    "HOST:PORT on which the broker serves the gateway: REST proxy, schema registry, metrics and console. "
    "Empty: no gateway.",
    text("http.advertised.url", "", scope=CLUSTER_WIDE),
    "The URL at which clients of the cluster find its gateway and schema registry: `headrace schema`, "
    "`consume` and `produce` ask the brokers for it. Default: the address of http.listener. To be set if "
    "clients reach the gateway by another name, or if it is a process of its own.",
    items("http.hosts", ()),
    "Host names that the gateway accepts in addition to addresses, localhost and the machine's name, for "
    "example that of a proxy.",
    text("http.config", ""),
    "A properties file with more settings of the gateway, such as ssl.keystore.location for HTTPS.",
    text("http.client.config", ""),
    "A properties file of a Kafka client: how the gateway connects to the brokers, and as which user. "
    "With SASL, the gateway's users authenticate. Empty: PLAINTEXT.",
    flag("http.allow.unauthenticated", False),
    "Whether the gateway serves everyone who reaches it, with its own rights. Without this a gateway "
    "without authentication listens on the loopback only.",
    # Features that Headrace does not have.
    java_class("create.topic.policy.class.name", only_default=True),
    "Only the default is accepted: Java classes are not supported.",
    java_class("alter.config.policy.class.name", only_default=True),
    "Only the default is accepted: Java classes are not supported.",
    flag("remote.log.storage.system.enable", False, only_default=True),
    "Only the default is accepted: tiered storage is not supported.",
)


def _topic_defaults() -> list[Setting]:
    """Return the broker settings that are the defaults of topic settings."""
    return [
        replace(
            topic,
            name=BROKER_SYNONYMS[topic.name],
            default=None if BROKER_SYNONYMS[topic.name] in COARSER else topic.default,
            doc=(
                f"For topics that do not set {topic.name}: {topic.doc[0].lower()}{topic.doc[1:]}"
                if topic.has_effect
                else topic.doc
            ),
        )
        for topic in TOPIC_SETTINGS.by_name.values()
        if topic.name in BROKER_SYNONYMS
    ]


_OF_LISTENERS: Final = frozenset(
    {*(setting.name for setting in SECURITY_SETTINGS), "max.connections", "max.connection.creation.rate"}
)


class BrokerSettings(Settings):
    """The settings of a broker.

    Kafka also accepts settings of one listener, such as `listener.name.external.sasl.enabled.mechanisms`.
    Those of security and the limits of connections apply to that listener; others have no effect.
    """

    def get(self, name: str) -> Setting | None:
        base = self.base_of(name)
        if base is None:
            return self.by_name.get(name)
        if base in _OF_LISTENERS:
            return replace(self.by_name[base], name=name, default=None)
        doc = "No effect: the setting applies to all listeners."
        return replace(self.by_name[base], name=name, default=None, doc=doc)

    def base_of(self, name: str) -> str | None:
        """Return the setting that `name` overrides for one listener; None if it overrides none."""
        if not name.startswith(_LISTENER_PREFIX):
            return None
        _, _, of_listener = name.removeprefix(_LISTENER_PREFIX).partition(".")
        _, _, of_mechanism = of_listener.partition(".")  # plain.sasl.jaas.config
        return next((base for base in (of_listener, of_mechanism) if base in self.by_name), None)


BROKER_SETTINGS: Final = BrokerSettings(
    [
        *_DECLARED,
        *COORDINATOR_SETTINGS,
        *SECURITY_SETTINGS,
        *ZOOKEEPER_SETTINGS,
        *settings_without_effect(),
        *_topic_defaults(),
    ]
)
