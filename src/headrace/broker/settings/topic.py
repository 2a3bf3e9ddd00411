"""The topic settings, the broker settings that are their defaults, and the LogConfig of a topic."""

from collections.abc import Mapping
from typing import Final

from headrace.broker.settings.setting import InvalidSetting, Kind, Scope, Setting, Settings, Value
from headrace.protocol.batch import TimestampType
from headrace.protocol.compression import Compression
from headrace.registry.validation import Strategy
from headrace.storage.config import DAY_MS, NEVER, LogConfig

_CLEANUP_POLICIES: Final = ("delete", "compact")
_THROTTLED_REPLICA: Final = r"\*|[0-9]+:[0-9]+"

_COMPRESSIONS: Final[Mapping[str, Compression | None]] = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


def _setting(name: str, kind: Kind, default: Value | None, doc: str, **bounds: object) -> Setting:
    return Setting(name=name, kind=kind, default=default, doc=doc, scope=Scope.CLUSTER_WIDE, **bounds)  # type: ignore[arg-type]


TOPIC_SETTINGS: Final = Settings(
    [
        _setting(
            "cleanup.policy",
            Kind.LIST,
            ("delete",),
            "The retention policy: delete removes old segments, compact keeps the last record of each key. "
            "Empty: all data is kept.",
            choices=_CLEANUP_POLICIES,
        ),
        _setting(
            "compression.type",
            Kind.STRING,
            "producer",
            "The compression of the log: producer keeps the producer's codec; with any other value the "
            "leader recompresses batches of another codec.",
            choices=tuple(_COMPRESSIONS),
        ),
        _setting(
            "compression.gzip.level",
            Kind.INT,
            -1,
            "No effect: the leader compresses at the codec's default level.",
            form="-1|[1-9]",
            example="a whole number from 1 to 9, or -1",
            has_effect=False,
        ),
        _setting(
            "compression.lz4.level",
            Kind.INT,
            9,
            "No effect: the leader compresses at the codec's default level.",
            low=1,
            high=17,
            has_effect=False,
        ),
        _setting(
            "compression.zstd.level",
            Kind.INT,
            3,
            "No effect: the leader compresses at the codec's default level.",
            low=-131_072,
            high=22,
            has_effect=False,
        ),
        _setting(
            "confluent.key.schema.validation",
            Kind.BOOLEAN,
            False,
            "Whether to refuse records whose key does not carry the id of a schema of its subject.",
        ),
        _setting(
            "confluent.value.schema.validation",
            Kind.BOOLEAN,
            False,
            "Whether to refuse records whose value does not carry the id of a schema of its subject.",
        ),
        _setting(
            "confluent.key.subject.name.strategy",
            Kind.STRING,
            Strategy.TOPIC.value,
            "The subject that keys are validated against: TOPIC-key, the record name, or TOPIC-NAME.",
            choices=tuple(each.value for each in Strategy),
        ),
        _setting(
            "confluent.value.subject.name.strategy",
            Kind.STRING,
            Strategy.TOPIC.value,
            "The subject that values are validated against: TOPIC-value, the record name, or TOPIC-NAME.",
            choices=tuple(each.value for each in Strategy),
        ),
        _setting(
            "delete.retention.ms",
            Kind.LONG,
            DAY_MS,
            "How long a compacted topic keeps a tombstone after the first cleaning that includes it.",
            low=0,
        ),
        _setting(
            "file.delete.delay.ms",
            Kind.LONG,
            60_000,
            "No effect: files are deleted immediately.",
            low=0,
            has_effect=False,
        ),
        _setting(
            "flush.messages",
            Kind.LONG,
            NEVER,
            "The number of records after which a log is flushed to disk.",
            low=1,
        ),
        _setting("flush.ms", Kind.LONG, NEVER, "The time after which a log is flushed to disk.", low=0),
        _setting(
            "headrace.append.expected.offset",
            Kind.BOOLEAN,
            False,
            "Whether the base offset of a batch must be the log end offset: compare and append.",
        ),
        _setting(
            "headrace.validate.records",
            Kind.BOOLEAN,
            False,
            "Whether every record of a batch is validated before the append, as Kafka does. The validation "
            "decompresses the batch and costs 1 to 2 microseconds of CPU time per record, in a thread.",
        ),
        _setting(
            "index.interval.bytes", Kind.INT, 4096, "The number of bytes between two index entries.", low=0
        ),
        _setting(
            "max.compaction.lag.ms",
            Kind.LONG,
            NEVER,
            "The maximum time that a record stays uncompacted.",
            low=1,
        ),
        _setting("max.message.bytes", Kind.INT, 1024**2 + 12, "The maximum size of a record batch.", low=0),
        _setting(
            "leader.replication.throttled.replicas",
            Kind.LIST,
            (),
            "The replicas that leader.replication.throttled.rate applies to: PARTITION:BROKER,… or *.",
            form=_THROTTLED_REPLICA,
            example="PARTITION:BROKER,… or *",
        ),
        _setting(
            "follower.replication.throttled.replicas",
            Kind.LIST,
            (),
            "The replicas that follower.replication.throttled.rate applies to: PARTITION:BROKER,… or *.",
            form=_THROTTLED_REPLICA,
            example="PARTITION:BROKER,… or *",
        ),
        _setting(
            "message.timestamp.after.max.ms",
            Kind.LONG,
            3_600_000,
            "How far the timestamp of a record may be ahead of the broker's clock.",
            low=0,
        ),
        _setting(
            "message.timestamp.before.max.ms",
            Kind.LONG,
            NEVER,
            "How far the timestamp of a record may be behind the broker's clock.",
            low=0,
        ),
        _setting(
            "message.timestamp.type",
            Kind.STRING,
            "CreateTime",
            "The timestamp of a record: the producer's (CreateTime) or that of the append (LogAppendTime).",
            choices=("CreateTime", "LogAppendTime"),
        ),
        _setting(
            "min.cleanable.dirty.ratio",
            Kind.DOUBLE,
            0.5,
            "The minimum ratio of uncompacted bytes to all bytes at which a log is compacted.",
            low=0,
            high=1,
        ),
        _setting(
            "min.compaction.lag.ms", Kind.LONG, 0, "The minimum time that a record stays uncompacted.", low=0
        ),
        _setting(
            "min.insync.replicas",
            Kind.INT,
            1,
            "The minimum size of the ISR for a produce request with acks=all.",
            low=1,
        ),
        _setting(
            "preallocate", Kind.BOOLEAN, False, "No effect: files are not preallocated.", has_effect=False
        ),
        _setting(
            "remote.storage.enable",
            Kind.BOOLEAN,
            False,
            "Only the default is accepted: tiered storage is not supported.",
            only_default=True,
        ),
        *(
            _setting(
                name, Kind.BOOLEAN, False, "No effect: tiered storage is not supported.", has_effect=False
            )
            for name in ("remote.log.copy.disable", "remote.log.delete.on.disable")
        ),
        *(
            _setting(
                name, Kind.LONG, -2, "No effect: tiered storage is not supported.", low=-2, has_effect=False
            )
            for name in ("local.retention.bytes", "local.retention.ms")
        ),
        _setting(
            "retention.bytes",
            Kind.LONG,
            -1,
            "The size of a partition above which old segments are deleted; -1: unlimited.",
            low=-1,
        ),
        _setting("retention.ms", Kind.LONG, 7 * DAY_MS, "The retention time; -1: unlimited.", low=-1),
        _setting("segment.bytes", Kind.INT, 1024**3, "The size at which a segment is rolled.", low=14),
        _setting(
            "internal.segment.bytes",
            Kind.INT,
            None,
            "Overrides segment.bytes; Kafka's own tests use it.",
            low=14,
            internal=True,
        ),
        _setting(
            "segment.index.bytes", Kind.INT, 10 * 1024**2, "The maximum size of an offset index.", low=4
        ),
        _setting(
            "segment.jitter.ms",
            Kind.LONG,
            0,
            "No effect: segments are rolled without jitter.",
            low=0,
            has_effect=False,
        ),
        _setting("segment.ms", Kind.LONG, 7 * DAY_MS, "The age at which a segment is rolled.", low=1),
        _setting(
            "unclean.leader.election.enable",
            Kind.BOOLEAN,
            False,
            "Whether a replica outside the ISR may be elected leader as a last resort, which may lose "
            "records.",
        ),
    ]
)

BROKER_SYNONYMS: Final = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "index.interval.bytes": "log.index.interval.bytes",
    "local.retention.bytes": "log.local.retention.bytes",
    "local.retention.ms": "log.local.retention.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "preallocate": "log.preallocate",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "segment.jitter.ms": "log.roll.jitter.ms",
    "segment.ms": "log.roll.ms",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""The broker setting that is the default of a topic setting; some topic settings have none."""


def topic_values(defaults: Mapping[str, Value | None], own: Mapping[str, str]) -> dict[str, Value]:
    """Return every topic setting: the topic's own value, or the broker's default."""
    values: dict[str, Value] = {}
    for name, setting in TOPIC_SETTINGS.by_name.items():
        inherited = defaults.get(BROKER_SYNONYMS.get(name, ""))
        default = setting.default if inherited is None else inherited
        if name in own:
            values[name] = setting.parse(own[name])
        elif default is not None:
            values[name] = default
    return values


def check_topic_values(values: Mapping[str, Value]) -> None:
    """Raise InvalidSetting if settings contradict each other."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int), least
    assert isinstance(most, int), most
    if least > most:
        raise InvalidSetting(f"min.compaction.lag.ms={least} is larger than max.compaction.lag.ms={most}")


def log_config(values: Mapping[str, Value], **of_broker: int) -> LogConfig:
    """Return the settings of a topic that its logs need; those `of_broker` are the same for all topics."""
    policies = values["cleanup.policy"]
    assert isinstance(policies, tuple), policies

    def number(name: str) -> int:
        value = values[name]
        assert isinstance(value, int), (name, value)
        return value

    return LogConfig(
        segment_bytes=number(
            "internal.segment.bytes" if "internal.segment.bytes" in values else "segment.bytes"
        ),
        segment_ms=number("segment.ms"),
        segment_index_bytes=number("segment.index.bytes"),
        index_interval_bytes=number("index.interval.bytes"),
        max_message_bytes=number("max.message.bytes"),
        message_timestamp_type=(
            TimestampType.LOG_APPEND_TIME
            if values["message.timestamp.type"] == "LogAppendTime"
            else TimestampType.CREATE_TIME
        ),
        message_timestamp_before_max_ms=number("message.timestamp.before.max.ms"),
        message_timestamp_after_max_ms=number("message.timestamp.after.max.ms"),
        flush_messages=number("flush.messages"),
        flush_ms=number("flush.ms"),
        compression=_COMPRESSIONS[str(values["compression.type"])],
        append_expected_offset=bool(values["headrace.append.expected.offset"]),
        validate_records=bool(values["headrace.validate.records"]),
        compact="compact" in policies,
        delete="delete" in policies,
        retention_ms=number("retention.ms"),
        retention_bytes=number("retention.bytes"),
        delete_retention_ms=number("delete.retention.ms"),
        min_compaction_lag_ms=number("min.compaction.lag.ms"),
        max_compaction_lag_ms=number("max.compaction.lag.ms"),
        min_cleanable_dirty_ratio=float(str(values["min.cleanable.dirty.ratio"])),
        **of_broker,
    )
