"""What a topic may set, the broker setting that gives each its default, and the LogConfig they make."""

from collections.abc import Mapping
from typing import Final

from headrace.broker.settings import InvalidSetting, Kind, Scope, Setting, Settings, Value
from headrace.protocol.batch import TimestampType
from headrace.protocol.compression import Compression
from headrace.registry.validation import Strategy
from headrace.storage.config import DAY_MS, NEVER, LogConfig

_ANY_TIME: Final = dict[str, float](low=-1)
_CLEANUP_POLICIES: Final = ("delete", "compact")
_REPLICA: Final = r"\*|[0-9]+:[0-9]+"  # a throttled one


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
            "What happens to old data: delete removes segments, compact keeps the last record of each key. "
            "Nothing: all of it is kept.",
            choices=_CLEANUP_POLICIES,
        ),
        _setting(
            "compression.type",
            Kind.STRING,
            "producer",
            "How data is compressed on disk: as each producer sent it, or so, for which the leader packs "
            "what came otherwise.",
            choices=tuple(_COMPRESSIONS),
        ),
        _setting(
            "compression.gzip.level",
            Kind.INT,
            -1,
            "No effect: the leader packs at the codec's usual level.",
            form="-1|[1-9]",
            example="a whole number from 1 to 9, or -1",
            has_effect=False,
        ),
        _setting(
            "compression.lz4.level",
            Kind.INT,
            9,
            "No effect: the leader packs at the codec's usual level.",
            low=1,
            high=17,
            has_effect=False,
        ),
        _setting(
            "compression.zstd.level",
            Kind.INT,
            3,
            "No effect: the leader packs at the codec's usual level.",
            low=-131_072,
            high=22,
            has_effect=False,
        ),
        _setting(
            "confluent.key.schema.validation",
            Kind.BOOLEAN,
            False,
            "Whether records are refused whose key has not the id of a schema of its subject.",
        ),
        _setting(
            "confluent.value.schema.validation",
            Kind.BOOLEAN,
            False,
            "Whether records are refused whose value has not the id of a schema of its subject.",
        ),
        _setting(
            "confluent.key.subject.name.strategy",
            Kind.STRING,
            Strategy.TOPIC.value,
            "Which subject keys are validated by: TOPIC-key, the name of the record, or TOPIC-NAME.",
            choices=tuple(each.value for each in Strategy),
        ),
        _setting(
            "confluent.value.subject.name.strategy",
            Kind.STRING,
            Strategy.TOPIC.value,
            "Which subject values are validated by: TOPIC-value, the name of the record, or TOPIC-NAME.",
            choices=tuple(each.value for each in Strategy),
        ),
        _setting(
            "delete.retention.ms",
            Kind.LONG,
            DAY_MS,
            "How long a compacted topic keeps a tombstone after the first pass that met it.",
            low=0,
        ),
        _setting(
            "file.delete.delay.ms",
            Kind.LONG,
            60_000,
            "No effect: files are removed at once.",
            low=0,
            has_effect=False,
        ),
        _setting(
            "flush.messages", Kind.LONG, NEVER, "After how many records an append waits for the disk.", low=1
        ),
        _setting("flush.ms", Kind.LONG, NEVER, "After how much time a log is flushed.", low=0),
        _setting(
            "headrace.append.expected.offset",
            Kind.BOOLEAN,
            False,
            "Whether a batch must name the offset that it is to get, as its base offset: compare and append.",
        ),
        _setting(
            "headrace.validate.records",
            Kind.BOOLEAN,
            False,
            "Whether every record of a batch is checked before the batch is appended, as Kafka does. It "
            "costs 1 to 2 microseconds of CPU time per record, in a thread that also unpacks the batch.",
        ),
        _setting(
            "index.interval.bytes", Kind.INT, 4096, "How much data lies between two index entries.", low=0
        ),
        _setting(
            "max.compaction.lag.ms", Kind.LONG, NEVER, "How long a record may wait for compaction.", low=1
        ),
        _setting("max.message.bytes", Kind.INT, 1024**2 + 12, "The largest batch that is accepted.", low=0),
        _setting(
            "leader.replication.throttled.replicas",
            Kind.LIST,
            (),
            "Replicas that leader.replication.throttled.rate is for: PARTITION:BROKER,… or *.",
            form=_REPLICA,
            example="PARTITION:BROKER,… or *",
        ),
        _setting(
            "follower.replication.throttled.replicas",
            Kind.LIST,
            (),
            "Replicas that follower.replication.throttled.rate is for: PARTITION:BROKER,… or *.",
            form=_REPLICA,
            example="PARTITION:BROKER,… or *",
        ),
        _setting(
            "message.timestamp.after.max.ms",
            Kind.LONG,
            3_600_000,
            "How far ahead of the broker's clock a record's time may be.",
            low=0,
        ),
        _setting(
            "message.timestamp.before.max.ms",
            Kind.LONG,
            NEVER,
            "How far behind the broker's clock a record's time may be.",
            low=0,
        ),
        _setting(
            "message.timestamp.type",
            Kind.STRING,
            "CreateTime",
            "Whose time a record carries: the producer's, or the broker's at the append.",
            choices=("CreateTime", "LogAppendTime"),
        ),
        _setting(
            "min.cleanable.dirty.ratio",
            Kind.DOUBLE,
            0.5,
            "Which part of a log must be new for a compaction to be worth it.",
            low=0,
            high=1,
        ),
        _setting("min.compaction.lag.ms", Kind.LONG, 0, "How long a record is safe from compaction.", low=0),
        _setting(
            "min.insync.replicas",
            Kind.INT,
            1,
            "How many replicas must be in sync for acks=all to be accepted.",
            low=1,
        ),
        _setting(
            "preallocate", Kind.BOOLEAN, False, "No effect: files grow as they are written.", has_effect=False
        ),
        _setting(
            "remote.storage.enable",
            Kind.BOOLEAN,
            False,
            "Only the default is accepted: there is no tiered storage.",
            only_default=True,
        ),
        *(
            _setting(name, Kind.BOOLEAN, False, "No effect: there is no tiered storage.", has_effect=False)
            for name in ("remote.log.copy.disable", "remote.log.delete.on.disable")
        ),
        *(
            _setting(name, Kind.LONG, -2, "No effect: there is no tiered storage.", low=-2, has_effect=False)
            for name in ("local.retention.bytes", "local.retention.ms")
        ),
        _setting(
            "retention.bytes",
            Kind.LONG,
            -1,
            "How large a partition may grow before old segments go; -1: any.",
            low=-1,
        ),
        _setting("retention.ms", Kind.LONG, 7 * DAY_MS, "How long data is kept; -1: for ever.", low=-1),
        _setting("segment.bytes", Kind.INT, 1024**3, "The size at which a segment is closed.", low=14),
        _setting(
            "internal.segment.bytes",
            Kind.INT,
            None,
            "The size at which a segment is closed, instead of segment.bytes: for tests of Kafka's.",
            low=14,
            internal=True,
        ),
        _setting("segment.index.bytes", Kind.INT, 10 * 1024**2, "The largest an index may grow.", low=4),
        _setting(
            "segment.jitter.ms",
            Kind.LONG,
            0,
            "No effect: segments are closed on time.",
            low=0,
            has_effect=False,
        ),
        _setting("segment.ms", Kind.LONG, 7 * DAY_MS, "The age at which a segment is closed.", low=1),
        _setting(
            "unclean.leader.election.enable",
            Kind.BOOLEAN,
            False,
            "Whether a replica that was not in sync may lead if no other is left; records may be lost.",
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
"""The broker's setting that a topic's falls back to; some have none."""


def topic_values(defaults: Mapping[str, Value | None], own: Mapping[str, str]) -> dict[str, Value]:
    """Every topic setting: what the topic set itself, else what the broker says."""
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
    """Raise InvalidSetting if settings that are each possible cannot be together."""
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int), least
    assert isinstance(most, int), most
    if least > most:
        raise InvalidSetting(f"min.compaction.lag.ms={least} is larger than max.compaction.lag.ms={most}")


def log_config(values: Mapping[str, Value], *, producer_id_expiration_ms: int) -> LogConfig:
    """The part of a topic's settings that its logs need."""
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
        producer_id_expiration_ms=producer_id_expiration_ms,
    )
