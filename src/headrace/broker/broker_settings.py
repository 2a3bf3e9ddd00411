"""What a broker may set. Kafka's names and defaults, where the two have the same thing to say."""

from dataclasses import replace
from typing import Final

from headrace.broker.group_settings import GROUP_SETTINGS
from headrace.broker.replication_settings import REPLICATION_SETTINGS
from headrace.broker.settings import Kind, Scope, Setting, Settings, Value
from headrace.broker.settings_without_effect import SETTINGS_WITHOUT_EFFECT
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS
from headrace.storage.config import DAY_MS, NEVER

_FOR_A_LISTENER: Final = "listener.name."


MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

COARSER: Final = {
    "log.retention.ms": {"log.retention.minutes": MINUTE_MS, "log.retention.hours": HOUR_MS},
    "log.roll.ms": {"log.roll.hours": HOUR_MS},
    "log.roll.jitter.ms": {"log.roll.jitter.hours": HOUR_MS},
    "log.flush.interval.ms": {"log.flush.scheduler.interval.ms": 1},
}
"""Other settings of the same time, with their unit in ms: the first that is given counts, if it is not."""


def _own(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, **bounds)  # type: ignore[arg-type]


def _dynamic(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return _own(name, kind, default, doc, scope=Scope.CLUSTER_WIDE, **bounds)


def _topic_defaults() -> list[Setting]:
    """The settings by which a broker gives topics their defaults."""
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


_HTTP: Final = _own(
    "http.listener",
    Kind.STRING,
    "",
    "HOST:PORT of the broker's gateway: REST proxy, schema registry, metrics and console. Empty: none.",
)
_HTTP_HOSTS: Final = _own(
    "http.hosts",
    Kind.LIST,
    (),
    "Names that the gateway may be asked by on the loopback, besides localhost and the machine's: a proxy's.",
)

_REFUSED: Final = [
    _own(
        "authorizer.class.name",
        Kind.STRING,
        "",
        "Only the default is accepted: there are no ACLs, and a Java class cannot run here.",
        only_default=True,
    ),
    _own(
        "create.topic.policy.class.name",
        Kind.CLASS,
        None,
        "Only the default is accepted: a Java class cannot run here.",
        only_default=True,
    ),
    _own(
        "alter.config.policy.class.name",
        Kind.CLASS,
        None,
        "Only the default is accepted: a Java class cannot run here.",
        only_default=True,
    ),
    _own(
        "security.inter.broker.protocol",
        Kind.STRING,
        "PLAINTEXT",
        "Only the default is accepted: there is no TLS and no SASL yet.",
        only_default=True,
    ),
    _own(
        "remote.log.storage.system.enable",
        Kind.BOOLEAN,
        False,
        "Only the default is accepted: there is no tiered storage.",
        only_default=True,
    ),
]
"""Settings of Kafka whose values promise something that would not be kept here."""


class BrokerSettings(Settings):
    """The settings of a broker.

    Kafka also takes them for one listener: `listener.name.external.max.connections`. Those are known and have
    no effect: every setting is for all listeners.
    """

    def get(self, name: str) -> Setting | None:
        base = self.base_of(name)
        if base is None:
            return self.by_name.get(name)
        doc = "No effect: settings are for all listeners."
        return replace(self.by_name[base], name=name, default=None, doc=doc, has_effect=False)

    def base_of(self, name: str) -> str | None:
        """The setting for all listeners that `name` is for one of; None if it is no such name."""
        if not name.startswith(_FOR_A_LISTENER):
            return None
        _, _, of_listener = name.removeprefix(_FOR_A_LISTENER).partition(".")
        _, _, of_mechanism = of_listener.partition(".")  # plain.sasl.jaas.config
        return next((base for base in (of_listener, of_mechanism) if base in self.by_name), None)


BROKER_SETTINGS: Final = BrokerSettings(
    [
        _own("broker.id", Kind.INT, 0, "The number of this broker, its own in the cluster.", low=0),
        _own("node.id", Kind.INT, None, "The same as broker.id; if both are set they must be equal.", low=0),
        _own(
            "process.roles",
            Kind.LIST,
            (),
            "Must contain broker. No effect beyond that: every broker can be elected controller.",
            choices=("broker", "controller"),
        ),
        _own("broker.rack", Kind.STRING, None, "Where this broker stands; replicas are spread over racks."),
        _own("log.dirs", Kind.LIST, ("headrace-data",), "The directory that holds the logs: one."),
        _own("log.dir", Kind.LIST, None, "The same as log.dirs, which wins if both are set."),
        _own("listeners", Kind.LIST, ("PLAINTEXT://:9092",), "Where clients connect: NAME://HOST:PORT."),
        _own(
            "advertised.listeners",
            Kind.LIST,
            (),
            "What clients are told to connect to, if that is not what `listeners` says.",
        ),
        _own(
            "listener.security.protocol.map",
            Kind.STRING,
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "The security protocol of each listener name: NAME:PROTOCOL. Only PLAINTEXT works so far.",
        ),
        _own(
            "inter.broker.listener.name",
            Kind.STRING,
            None,
            "The listener that brokers use among themselves; by default the first PLAINTEXT one.",
        ),
        _own("zookeeper.connect", Kind.STRING, "127.0.0.1:2181", "The ensemble: host:port,host:port/chroot."),
        _own(
            "zookeeper.session.timeout.ms",
            Kind.INT,
            18_000,
            "How long a silent broker counts as alive.",
            low=1,
        ),
        _own(
            "zookeeper.connection.timeout.ms",
            Kind.INT,
            18_000,
            "How long a start waits for ZooKeeper.",
            low=1,
        ),
        _own("num.partitions", Kind.INT, 1, "How many partitions a topic gets if nobody says.", low=1),
        _own(
            "default.replication.factor", Kind.INT, 1, "How many replicas a topic gets if nobody says.", low=1
        ),
        _own(
            "auto.create.topics.enable",
            Kind.BOOLEAN,
            True,
            "Whether a topic appears when a client asks for it.",
        ),
        _own("delete.topic.enable", Kind.BOOLEAN, True, "Whether topics can be deleted."),
        _own("socket.request.max.bytes", Kind.INT, 100 * 1024**2, "The largest request that is read.", low=1),
        _own(
            "queued.max.request.bytes",
            Kind.LONG,
            256 * 1024**2,
            "How many bytes of requests may be in hand at a time, over all connections.",
            low=1,
        ),
        _dynamic("max.connections", Kind.INT, 10_000, "How many connections are accepted at a time.", low=0),
        _dynamic(
            "max.connections.per.ip", Kind.INT, 10_000, "How many of them may come from one address.", low=0
        ),
        _dynamic(
            "max.connections.per.ip.overrides",
            Kind.STRING,
            "",
            "How many may come from each of these addresses instead: ADDRESS:COUNT,…; no host names.",
        ),
        _own(
            "max.request.partition.size.limit",
            Kind.INT,
            2000,
            "How many partitions one DescribeTopicPartitions response has.",
            low=1,
        ),
        _own(
            "connections.max.idle.ms", Kind.LONG, 600_000, "How long a silent connection stays open.", low=1
        ),
        _own(
            "fetch.max.bytes", Kind.INT, 55 * 1024**2, "The most that one Fetch response carries.", low=1024
        ),
        _own(
            "max.incremental.fetch.session.cache.slots",
            Kind.INT,
            1000,
            "How many incremental fetch sessions are kept. One that is unused for two minutes makes room.",
            low=0,
        ),
        _own(
            "log.retention.check.interval.ms",
            Kind.LONG,
            300_000,
            "How often retention looks for segments to remove.",
            low=1,
        ),
        _own(
            "replica.high.watermark.checkpoint.interval.ms",
            Kind.LONG,
            5_000,
            "How often high watermarks are written down.",
            low=1,
        ),
        _own("log.cleaner.enable", Kind.BOOLEAN, True, "Whether compacted topics are compacted."),
        _dynamic(
            "log.cleaner.threads",
            Kind.INT,
            1,
            "Whether compacted topics are compacted: 0 pauses it. Any other number: one log at a time.",
            low=0,
        ),
        _dynamic(
            "log.cleaner.backoff.ms", Kind.LONG, 15_000, "How often to look for logs to compact.", low=0
        ),
        _dynamic(
            "log.cleaner.dedupe.buffer.size",
            Kind.LONG,
            128 * 1024**2,
            "The memory that a compaction may use for keys.",
            low=1024,
        ),
        _dynamic(
            "log.cleaner.io.max.bytes.per.second",
            Kind.DOUBLE,
            32.0 * 1024**2,
            "How fast a compaction reads, so that clients do not notice it.",
            low=1,
        ),
        _dynamic(
            "producer.id.expiration.ms", Kind.INT, DAY_MS, "How long a silent producer is remembered.", low=1
        ),
        _own(
            "log.retention.minutes",
            Kind.INT,
            None,
            "How long data is kept if log.retention.ms is not set; -1: for ever.",
            low=-1,
        ),
        _own(
            "log.retention.hours",
            Kind.INT,
            168,
            "How long data is kept if neither log.retention.ms nor log.retention.minutes is set; "
            "-1: for ever.",
            low=-1,
        ),
        _own(
            "log.roll.hours",
            Kind.INT,
            168,
            "The age at which a segment is closed if log.roll.ms is not set.",
            low=1,
        ),
        _own(
            "log.roll.jitter.hours",
            Kind.INT,
            0,
            "No effect: segments are closed on time.",
            low=0,
            has_effect=False,
        ),
        _own(
            "log.flush.scheduler.interval.ms",
            Kind.LONG,
            NEVER,
            "The time after which a log is flushed if log.flush.interval.ms is not set.",
        ),
        *GROUP_SETTINGS,
        *REPLICATION_SETTINGS,
        _HTTP,
        _HTTP_HOSTS,
        *_REFUSED,
        *SETTINGS_WITHOUT_EFFECT,
        *_topic_defaults(),
    ]
)
