"""The topic settings that a log depends on, under Kafka's names with underscores for dots."""

from dataclasses import dataclass, field

from headrace.protocol.batch import TimestampType
from headrace.protocol.compression import Compression

DAY_MS = 24 * 60 * 60 * 1000
NEVER = 2**63 - 1
MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Kafka's topic-level settings and defaults. The object is immutable: a change makes a new one."""

    segment_bytes: int = 1024**3
    segment_ms: int = 7 * DAY_MS
    segment_index_bytes: int = 10 * 1024**2
    index_interval_bytes: int = 4096
    max_message_bytes: int = 1024**2 + 12
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int = NEVER
    message_timestamp_after_max_ms: int = 3600 * 1000
    flush_messages: int = NEVER
    flush_ms: int = NEVER
    compression: Compression | None = None  # of the stored batches; None: as the producer compressed them
    append_expected_offset: bool = False  # a batch is refused unless it names the offset that it will get
    validate_records: bool = False  # a batch is refused unless each of its records is well formed

    compact: bool = False  # `cleanup.policy` holds "compact"
    delete: bool = True  # `cleanup.policy` holds "delete"
    retention_ms: int = 7 * DAY_MS  # -1: for ever
    retention_bytes: int = -1  # -1: without limit
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NEVER
    min_cleanable_dirty_ratio: float = 0.5

    producer_id_expiration_ms: int = DAY_MS  # this and the next two are broker settings
    max_producer_ids: int = 20_000
    producer_id_live_ms: int = 10 * 60 * 1000

    reads_records: bool = field(init=False)  # whether a leader may have to read the records of a batch

    def __post_init__(self) -> None:
        reads = self.compact or self.append_expected_offset or self.validate_records
        object.__setattr__(self, "reads_records", reads or self.compression is not None)
