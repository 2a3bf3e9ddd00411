"""What a broker may set. Kafka's names and defaults, where the two have the same thing to say."""

from typing import Final

from headrace.broker.group_settings import GROUP_SETTINGS
from headrace.broker.replication_settings import REPLICATION_SETTINGS
from headrace.broker.settings import Kind, Scope, Setting, Settings, Value
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS
from headrace.storage.config import DAY_MS


def _own(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, **bounds)  # type: ignore[arg-type]


def _topic_defaults() -> list[Setting]:
    """The settings by which a broker gives topics their defaults."""
    return [
        Setting(
            name=BROKER_SYNONYMS[topic.name],
            kind=topic.kind,
            default=topic.default,
            doc=f"For topics that do not set {topic.name}: {topic.doc[0].lower()}{topic.doc[1:]}",
            low=topic.low,
            high=topic.high,
            choices=topic.choices,
            scope=Scope.CLUSTER_WIDE,
        )
        for topic in TOPIC_SETTINGS.by_name.values()
        if topic.name in BROKER_SYNONYMS
    ]


def _accepted(name: str, default: int, why: str, low: int) -> Setting:
    """A setting that files written for Kafka have, and that changes nothing here."""
    return _own(name, Kind.INT, default, f"Accepted for Kafka's sake; {why}.", low=low)


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

_ACCEPTED: Final = [
    _accepted("num.network.threads", 3, "one event loop serves every connection", 1),
    _accepted("num.io.threads", 8, "one event loop answers every request", 1),
    _accepted("num.recovery.threads.per.data.dir", 1, "logs are recovered one after the other", 1),
    _accepted("socket.send.buffer.bytes", 102_400, "the system chooses", -1),
    _accepted("socket.receive.buffer.bytes", 102_400, "the system chooses", -1),
    _accepted("transaction.state.log.replication.factor", 3, "no such topic is made", 1),
    _accepted("transaction.state.log.min.isr", 2, "no such topic is made", 1),
    _accepted("offsets.load.buffer.size", 5 * 1024**2, "they are read 256 KiB at a time", 1),
    _accepted("offsets.commit.timeout.ms", 5000, "a commit is answered when it is in the log", 1),
    _accepted("offsets.topic.compression.codec", 0, "offsets are not compressed", 0),
    _accepted("group.coordinator.threads", 4, "one event loop coordinates every group", 1),
]

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS

COARSER: Final = {
    "log.retention.ms": {"log.retention.minutes": MINUTE_MS, "log.retention.hours": HOUR_MS},
    "log.roll.ms": {"log.roll.hours": HOUR_MS},
}
"""Settings of a time in coarser units, with their unit: the first that is given counts, if none in ms is."""

BROKER_SETTINGS: Final = Settings(
    [
        _own("broker.id", Kind.INT, 0, "The number of this broker, its own in the cluster.", low=0),
        _own("broker.rack", Kind.STRING, None, "Where this broker stands; replicas are spread over racks."),
        _own("log.dirs", Kind.STRING, "headrace-data", "The directory that holds the logs."),
        _own("listeners", Kind.LIST, ("PLAINTEXT://:9092",), "Where clients connect: NAME://HOST:PORT."),
        _own(
            "advertised.listeners",
            Kind.LIST,
            (),
            "What clients are told to connect to, if that is not what `listeners` says.",
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
        _own("max.connections", Kind.INT, 10_000, "How many connections are accepted at a time.", low=1),
        _own(
            "max.connections.per.ip", Kind.INT, 10_000, "How many of them may come from one address.", low=0
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
            "How many incremental fetch sessions are remembered.",
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
            "log.flush.offset.checkpoint.interval.ms",
            Kind.INT,
            60_000,
            "Accepted for Kafka's sake; recovery points are written with the high watermarks.",
            low=0,
        ),
        _own(
            "replica.high.watermark.checkpoint.interval.ms",
            Kind.LONG,
            5_000,
            "How often high watermarks are written down.",
            low=1,
        ),
        _own("log.cleaner.enable", Kind.BOOLEAN, True, "Whether compacted topics are compacted."),
        _own("log.cleaner.backoff.ms", Kind.LONG, 15_000, "How often to look for logs to compact.", low=0),
        _own(
            "log.cleaner.dedupe.buffer.size",
            Kind.LONG,
            128 * 1024**2,
            "The memory that a compaction may use for keys.",
            low=1024,
        ),
        _own(
            "log.cleaner.io.max.bytes.per.second",
            Kind.DOUBLE,
            32.0 * 1024**2,
            "How fast a compaction reads, so that clients do not notice it.",
            low=1,
        ),
        _own(
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
        *GROUP_SETTINGS,
        *REPLICATION_SETTINGS,
        _HTTP,
        _HTTP_HOSTS,
        *_ACCEPTED,
        *_topic_defaults(),
    ]
)
