"""The broker settings that the group coordinator uses."""

from dataclasses import dataclass
from typing import NamedTuple


class ConsumerTimeouts(NamedTuple):
    """The timeouts that a consumer group overrides; None means the broker's setting."""

    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLimits:
    """One value for each setting; `docs/config.md` describes the settings."""

    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = 2**31 - 1
    new_member_join_timeout_ms: int = 300_000  # a constant in Kafka too
    max_record_bytes: int = 1_000_000  # of one record
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_max_size: int = 2**31 - 1
    consumer_assignors: tuple[str, ...] = ("uniform", "range")
    may_upgrade: bool = True
    may_downgrade: bool = True
