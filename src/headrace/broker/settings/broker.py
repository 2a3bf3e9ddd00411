"""The broker settings, with Kafka's names and defaults."""

from dataclasses import replace
from typing import Final

from headrace.broker.settings.group import GROUP_SETTINGS
from headrace.broker.settings.quota import QUOTA_SETTINGS
from headrace.broker.settings.replication import REPLICATION_SETTINGS
from headrace.broker.settings.security import SECURITY_SETTINGS
from headrace.broker.settings.setting import Kind, Scope, Setting, Settings, Value
from headrace.broker.settings.topic import BROKER_SYNONYMS, TOPIC_SETTINGS
from headrace.broker.settings.transaction import TRANSACTION_SETTINGS
from headrace.broker.settings.without_effect import SETTINGS_WITHOUT_EFFECT
from headrace.broker.settings.zookeeper import ZOOKEEPER_SETTINGS
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


def _static(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, **bounds)  # type: ignore[arg-type]


def _dynamic(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return _static(name, kind, default, doc, scope=Scope.CLUSTER_WIDE, **bounds)


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


_HTTP: Final = _static(
    "http.listener",
    Kind.STRING,
    "",
    "HOST:PORT on which the broker serves the gateway: REST proxy, schema registry, metrics and console. "
    "Empty: no gateway.",
)
_HTTP_ADVERTISED: Final = _dynamic(
    "http.advertised.url",
    Kind.STRING,
    "",
    "The URL at which clients of the cluster find its gateway and schema registry: `headrace schema`, "
    "`consume` and `produce` ask the brokers for it. Default: the address of http.listener. To be set if "
    "clients reach the gateway by another name, or if it is a process of its own.",
)
_HTTP_HOSTS: Final = _static(
    "http.hosts",
    Kind.LIST,
    (),
    "Host names that the gateway accepts in addition to addresses, localhost and the machine's name, for "
    "example that of a proxy.",
)
_HTTP_CONFIG: Final = _static(
    "http.config",
    Kind.STRING,
    "",
    "A properties file with more settings of the gateway, such as ssl.keystore.location for HTTPS.",
)
_HTTP_CLIENT_CONFIG: Final = _static(
    "http.client.config",
    Kind.STRING,
    "",
    "A properties file of a Kafka client: how the gateway connects to the brokers, and as which user. With "
    "SASL, the gateway's users authenticate. Empty: PLAINTEXT.",
)
_HTTP_UNAUTHENTICATED: Final = _static(
    "http.allow.unauthenticated",
    Kind.BOOLEAN,
    False,
    "Whether the gateway serves everyone who reaches it, with its own rights. Without this a gateway without "
    "authentication listens on the loopback only.",
)

_REFUSED: Final = [
    _static(
        "create.topic.policy.class.name",
        Kind.CLASS,
        None,
        "Only the default is accepted: Java classes are not supported.",
        only_default=True,
    ),
    _static(
        "alter.config.policy.class.name",
        Kind.CLASS,
        None,
        "Only the default is accepted: Java classes are not supported.",
        only_default=True,
    ),
    _static(
        "remote.log.storage.system.enable",
        Kind.BOOLEAN,
        False,
        "Only the default is accepted: tiered storage is not supported.",
        only_default=True,
    ),
]
"""Kafka's settings of features that Headrace does not have: any value but the default is refused."""


_OF_LISTENERS: Final = frozenset(
    {*(each.name for each in SECURITY_SETTINGS), "max.connections", "max.connection.creation.rate"}
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
        return replace(self.by_name[base], name=name, default=None, doc=doc, has_effect=False)

    def base_of(self, name: str) -> str | None:
        """Return the setting that `name` overrides for one listener; None if it overrides none."""
        if not name.startswith(_LISTENER_PREFIX):
            return None
        _, _, of_listener = name.removeprefix(_LISTENER_PREFIX).partition(".")
        _, _, of_mechanism = of_listener.partition(".")  # plain.sasl.jaas.config
        return next((base for base in (of_listener, of_mechanism) if base in self.by_name), None)


BROKER_SETTINGS: Final = BrokerSettings(
    [
        _static("broker.id", Kind.INT, 0, "The id of this broker, unique in the cluster.", low=0),
        _static(
            "node.id", Kind.INT, None, "The same as broker.id; if both are set, they must be equal.", low=0
        ),
        _static(
            "process.roles",
            Kind.LIST,
            (),
            "Must contain broker. No effect beyond that: every broker can be elected controller.",
            choices=("broker", "controller"),
        ),
        _static("broker.rack", Kind.STRING, None, "The rack of this broker; replicas are spread over racks."),
        _static(
            "headrace.node",
            Kind.STRING,
            None,
            "The name of the machine of this broker, for brokers that share one: replicas of a partition are "
            "spread over racks, then over nodes. Without a name the broker counts as a node of its own. With "
            "several headrace.brokers the default is node-<broker.id>.",
        ),
        _static(
            "headrace.brokers",
            Kind.STRING,
            "1",
            "How many brokers `headrace broker` runs, each a process that uses one core: a number, or auto "
            "for one per CPU and at least one per log directory. docs/clusters.md has the rule by which the "
            "ids, ports and directories of the brokers are derived.",
            form="auto|[1-9][0-9]?|100",
            example="auto, or a number from 1 to 100",
        ),
        _static(
            "log.dirs",
            Kind.LIST,
            ("headrace-data",),
            "The directories of the logs. A broker uses one; several are spread over headrace.brokers.",
        ),
        _static("log.dir", Kind.LIST, None, "The same as log.dirs, which takes precedence."),
        _static(
            "listeners", Kind.LIST, ("PLAINTEXT://:9092",), "The addresses to listen on: NAME://HOST:PORT."
        ),
        _static(
            "advertised.listeners",
            Kind.LIST,
            (),
            "The addresses that clients connect to, if they differ from `listeners`.",
        ),
        _static(
            "listener.security.protocol.map",
            Kind.STRING,
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "The security protocol of each listener name: NAME:PROTOCOL.",
            scope=Scope.PER_BROKER,
        ),
        _static(
            "inter.broker.listener.name",
            Kind.STRING,
            None,
            "The listener for connections between brokers; by default the first one with "
            "security.inter.broker.protocol.",
        ),
        _static("num.partitions", Kind.INT, 1, "The default number of partitions of a topic.", low=1),
        _static(
            "default.replication.factor", Kind.INT, 1, "The default replication factor of a topic.", low=1
        ),
        _static(
            "auto.create.topics.enable",
            Kind.BOOLEAN,
            True,
            "Whether a Metadata request creates the topics that it names.",
        ),
        _static("delete.topic.enable", Kind.BOOLEAN, True, "Whether topics can be deleted."),
        _static("socket.request.max.bytes", Kind.INT, 100 * 1024**2, "The maximum size of a request.", low=1),
        _static(
            "queued.max.request.bytes",
            Kind.LONG,
            256 * 1024**2,
            "The maximum size of all requests that are queued or processed, over all connections.",
            low=1,
        ),
        _dynamic("max.connections", Kind.INT, 10_000, "The maximum number of connections.", low=0),
        _dynamic(
            "max.connections.per.ip",
            Kind.INT,
            10_000,
            "The maximum number of connections from one IP address.",
            low=0,
        ),
        _dynamic(
            "max.connections.per.ip.overrides",
            Kind.STRING,
            "",
            "Overrides of max.connections.per.ip: ADDRESS:COUNT,…; host names are not resolved.",
        ),
        _static(
            "max.request.partition.size.limit",
            Kind.INT,
            2000,
            "The maximum number of partitions in a DescribeTopicPartitions response.",
            low=1,
        ),
        _static(
            "connections.max.idle.ms",
            Kind.LONG,
            600_000,
            "An idle connection is closed after this time.",
            low=1,
        ),
        _static("fetch.max.bytes", Kind.INT, 55 * 1024**2, "The maximum size of a Fetch response.", low=1024),
        _static(
            "max.incremental.fetch.session.cache.slots",
            Kind.INT,
            1000,
            "The maximum number of incremental fetch sessions. A session that is unused for two minutes may "
            "be evicted.",
            low=0,
        ),
        _static(
            "log.retention.check.interval.ms",
            Kind.LONG,
            300_000,
            "How often the broker checks for segments that retention deletes.",
            low=1,
        ),
        _static(
            "replica.high.watermark.checkpoint.interval.ms",
            Kind.LONG,
            5_000,
            "How often the high watermarks are checkpointed to disk.",
            low=1,
        ),
        _static(
            "log.cleaner.enable",
            Kind.BOOLEAN,
            True,
            "Whether the log cleaner runs, which compacts topics with cleanup.policy=compact.",
        ),
        _dynamic(
            "log.cleaner.threads",
            Kind.INT,
            1,
            "0 pauses the log cleaner; with any other number it compacts one log at a time.",
            low=0,
        ),
        _dynamic(
            "log.cleaner.backoff.ms",
            Kind.LONG,
            15_000,
            "How long an idle log cleaner waits before it looks for logs to compact.",
            low=0,
        ),
        _dynamic(
            "log.cleaner.dedupe.buffer.size",
            Kind.LONG,
            128 * 1024**2,
            "The memory that the log cleaner may use for deduplication.",
            low=1024,
        ),
        _dynamic(
            "log.cleaner.io.max.bytes.per.second",
            Kind.DOUBLE,
            32.0 * 1024**2,
            "The maximum rate at which the log cleaner reads.",
            low=1,
        ),
        _dynamic(
            "log.scrub.io.max.bytes.per.second",
            Kind.DOUBLE,
            1024.0**2,
            "The rate at which closed segments are read to find damage before a consumer does; 0: never.",
            low=0,
        ),
        _static(
            "log.scrub.interval.ms",
            Kind.LONG,
            3600 * 1000,
            "How long the scrub of closed segments pauses after it has read all of them.",
            low=100,
        ),
        _dynamic(
            "producer.id.expiration.ms",
            Kind.INT,
            DAY_MS,
            "The state of an idle producer id expires after this time.",
            low=1,
        ),
        _dynamic(
            "headrace.max.producer.ids.per.partition",
            Kind.INT,
            20_000,
            "How many producer ids a partition remembers. A new one replaces the one that has not written "
            "for longest, unless that one has written lately: then the new one is refused.",
            low=1,
        ),
        _static(
            "headrace.max.producer.ids",
            Kind.INT,
            500_000,
            "How many producer ids all partitions of a broker remember together. Beyond it, a partition with "
            "1,000 or more replaces its own.",
            low=1,
        ),
        _dynamic(
            "headrace.producer.id.live.ms",
            Kind.INT,
            10 * 60 * 1000,
            "For how long after its last write a producer id is not replaced by a new one. It should be "
            "longer than the delivery.timeout.ms of all producers.",
            low=0,
        ),
        _static(
            "log.retention.minutes",
            Kind.INT,
            None,
            "The retention time if log.retention.ms is not set; -1: unlimited.",
            low=-1,
        ),
        _static(
            "log.retention.hours",
            Kind.INT,
            168,
            "The retention time if neither log.retention.ms nor log.retention.minutes is set; -1: unlimited.",
            low=-1,
        ),
        _static(
            "log.roll.hours",
            Kind.INT,
            168,
            "The age at which a segment is rolled if log.roll.ms is not set.",
            low=1,
        ),
        _static(
            "log.roll.jitter.hours",
            Kind.INT,
            0,
            "No effect: segments are rolled without jitter.",
            low=0,
            has_effect=False,
        ),
        _static(
            "log.flush.scheduler.interval.ms",
            Kind.LONG,
            NEVER,
            "The flush interval if log.flush.interval.ms is not set.",
        ),
        _static(
            "unstable.api.versions.enable",
            Kind.BOOLEAN,
            False,
            "Whether clients may use versions of APIs that Kafka may still change: InitProducerId v6, with "
            "two-phase commit (KIP-939).",
            internal=True,
        ),
        *GROUP_SETTINGS,
        *TRANSACTION_SETTINGS,
        *SECURITY_SETTINGS,
        *QUOTA_SETTINGS,
        *ZOOKEEPER_SETTINGS,
        *REPLICATION_SETTINGS,
        _HTTP,
        _HTTP_ADVERTISED,
        _HTTP_HOSTS,
        _HTTP_CONFIG,
        _HTTP_CLIENT_CONFIG,
        _HTTP_UNAUTHENTICATED,
        *_REFUSED,
        *SETTINGS_WITHOUT_EFFECT,
        *_topic_defaults(),
    ]
)
