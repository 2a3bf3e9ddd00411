"""The topic settings, the broker settings that are their defaults, and the LogConfig of a topic."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headrace.broker.settings.setting import (
    CLUSTER_WIDE,
    InvalidSetting,
    Settings,
    Value,
    documented,
    double,
    flag,
    integer,
    items,
    long,
    text,
)
from headrace.protocol.batch import TimestampType
from headrace.protocol.compression import Compression
from headrace.registry.validation import Strategy
from headrace.storage.config import DAY_MS, NEVER, LogConfig

_COMPRESSIONS: Final[Mapping[str, Compression | None]] = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}


_STRATEGIES: Final = tuple(strategy.value for strategy in Strategy)
_REPLICAS: Final = {"form": r"\*|[0-9]+:[0-9]+", "example": "PARTITION:BROKER,… or *"}
_NOT_TIERED: Final = "No effect: tiered storage is not supported."
_NO_LEVEL: Final = "No effect: the leader compresses at the codec's default level."

_DECLARED: Final = documented(
    items("cleanup.policy", ("delete",), choices=("delete", "compact")),
    "The retention policy: delete removes old segments, compact keeps the last record of each key. Empty: "
    "all data is kept.",
    text("compression.type", "producer", choices=tuple(_COMPRESSIONS)),
    "The compression of the log: producer keeps the producer's codec; with any other value the leader "
    "recompresses batches of another codec.",
    integer("compression.gzip.level", -1, form="-1|[1-9]", example="a whole number from 1 to 9, or -1"),
    _NO_LEVEL,
    integer("compression.lz4.level", 9, low=1, high=17),
    _NO_LEVEL,
    integer("compression.zstd.level", 3, low=-131_072, high=22),
    _NO_LEVEL,
    flag("confluent.key.schema.validation", False),
    "Whether to refuse records whose key does not carry the id of a schema of its subject.",
    flag("confluent.value.schema.validation", False),
    "Whether to refuse records whose value does not carry the id of a schema of its subject.",
    text("confluent.key.subject.name.strategy", Strategy.TOPIC.value, choices=_STRATEGIES),
    "The subject that keys are validated against: TOPIC-key, the record name, or TOPIC-NAME.",
    text("confluent.value.subject.name.strategy", Strategy.TOPIC.value, choices=_STRATEGIES),
    "The subject that values are validated against: TOPIC-value, the record name, or TOPIC-NAME.",
    long("delete.retention.ms", DAY_MS, low=0),
    "How long a compacted topic keeps a tombstone after the first cleaning that includes it.",
    long("file.delete.delay.ms", 60_000, low=0),
    "No effect: files are deleted immediately.",
    long("flush.messages", NEVER, low=1),
    "The number of records after which a log is flushed to disk.",
    long("flush.ms", NEVER, low=0),
    "The time after which a log is flushed to disk.",
    flag("headrace.append.expected.offset", False),
    "Whether the base offset of a batch must be the log end offset: compare and append.",
    flag("headrace.validate.records", False),
    "Whether every record of a batch is validated before the append, as Kafka does. The validation "
    "decompresses the batch and costs 1 to 2 microseconds of CPU time per record, in a thread.",
    integer("index.interval.bytes", 4096, low=0),
    "The number of bytes between two index entries.",
    long("max.compaction.lag.ms", NEVER, low=1),
    "The maximum time that a record stays uncompacted.",
    integer("max.message.bytes", 1024**2 + 12, low=0),
    "The maximum size of a record batch.",
    items("leader.replication.throttled.replicas", (), **_REPLICAS),
    "The replicas that leader.replication.throttled.rate applies to: PARTITION:BROKER,… or *.",
    items("follower.replication.throttled.replicas", (), **_REPLICAS),
    "The replicas that follower.replication.throttled.rate applies to: PARTITION:BROKER,… or *.",
    long("message.timestamp.after.max.ms", 3_600_000, low=0),
    "How far the timestamp of a record may be ahead of the broker's clock.",
    long("message.timestamp.before.max.ms", NEVER, low=0),
    "How far the timestamp of a record may be behind the broker's clock.",
    text("message.timestamp.type", "CreateTime", choices=("CreateTime", "LogAppendTime")),
    "The timestamp of a record: the producer's (CreateTime) or that of the append (LogAppendTime).",
    double("min.cleanable.dirty.ratio", 0.5, low=0, high=1),
    "The minimum ratio of uncompacted bytes to all bytes at which a log is compacted.",
    long("min.compaction.lag.ms", 0, low=0),
    "The minimum time that a record stays uncompacted.",
    integer("min.insync.replicas", 1, low=1),
    "The minimum size of the ISR for a produce request with acks=all.",
    flag("preallocate", False),
    "No effect: files are not preallocated.",
    flag("remote.storage.enable", False, only_default=True),
    "Only the default is accepted: tiered storage is not supported.",
    flag("remote.log.copy.disable", False),
    _NOT_TIERED,
    flag("remote.log.delete.on.disable", False),
    _NOT_TIERED,
    long("local.retention.bytes", -2, low=-2),
    _NOT_TIERED,
    long("local.retention.ms", -2, low=-2),
    _NOT_TIERED,
    long("retention.bytes", -1, low=-1),
    "The size of a partition above which old segments are deleted; -1: unlimited.",
    long("retention.ms", 7 * DAY_MS, low=-1),
    "The retention time; -1: unlimited.",
    integer("segment.bytes", 1024**3, low=14),
    "The size at which a segment is rolled.",
    integer("internal.segment.bytes", low=14, internal=True),
    "Overrides segment.bytes; Kafka's own tests use it.",
    integer("segment.index.bytes", 10 * 1024**2, low=4),
    "The maximum size of an offset index.",
    long("segment.jitter.ms", 0, low=0),
    "No effect: segments are rolled without jitter.",
    long("segment.ms", 7 * DAY_MS, low=1),
    "The age at which a segment is rolled.",
    flag("unclean.leader.election.enable", False),
    "Whether a replica outside the ISR may be elected leader as a last resort, which may lose records.",
)
TOPIC_SETTINGS: Final = Settings(replace(setting, scope=CLUSTER_WIDE) for setting in _DECLARED)

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
