"""The settings of a group (KIP-848, KIP-932, KIP-1071), which override the broker's `group.*` settings."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headrace.broker.settings.setting import (
    CLUSTER_WIDE,
    InvalidSetting,
    Settings,
    Value,
    documented,
    flag,
    integer,
    text,
    without_effect,
)
from headrace.coordinators.group.limits import ConsumerTimeouts

_DECLARED: Final = documented(
    integer("consumer.session.timeout.ms", 45_000, low=1),
    "The session timeout of the members of this consumer group.",
    integer("consumer.heartbeat.interval.ms", 5_000, low=1),
    "The heartbeat interval of the members of this consumer group.",
    integer("consumer.assignment.interval.ms", 1_000, low=0),
    "No effect: assignments are computed immediately.",
)
_SHARE: Final = (
    integer("share.session.timeout.ms", 45_000, low=1),
    integer("share.heartbeat.interval.ms", 5_000, low=1),
    integer("share.assignment.interval.ms", 1_000, low=0),
    integer("share.record.lock.duration.ms", 30_000, low=1_000),
    integer("share.delivery.count.limit", 5, low=2),
    integer("share.partition.max.record.locks", 2_000, low=100),
    text(
        "share.auto.offset.reset",
        "latest",
        form="latest|earliest|by_duration:P.+",
        example="latest, earliest or by_duration:PnDTnHnMn.nS",
    ),
    text("share.isolation.level", "read_uncommitted", choices=("read_committed", "read_uncommitted")),
    flag("share.renew.acknowledge.enable", True),
)
_STREAMS: Final = (
    integer("streams.session.timeout.ms", 45_000, low=1),
    integer("streams.heartbeat.interval.ms", 5_000, low=1),
    integer("streams.assignment.interval.ms", 1_000, low=0),
    integer("streams.initial.rebalance.delay.ms", 3_000, low=0),
    integer("streams.num.standby.replicas", 0, low=0),
)
GROUP_CONFIGS: Final = Settings(
    replace(setting, scope=CLUSTER_WIDE)
    for setting in (
        *_DECLARED,
        *without_effect("share groups are not supported", *_SHARE),
        *without_effect("streams groups are not supported", *_STREAMS),
    )
)
_WITHOUT_SYNONYM: Final = {
    "share.auto.offset.reset",
    "share.isolation.level",
    "share.renew.acknowledge.enable",
}
GROUP_SYNONYMS: Final = {
    name: f"group.{name}" for name in GROUP_CONFIGS.by_name if name not in _WITHOUT_SYNONYM
}
"""The broker setting that is the default of a group setting; some group settings have none."""

_HEARTBEATS: Final = [
    (f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms")
    for kind in ("consumer", "share", "streams")
]


def check_group_values(own: Mapping[str, str], broker: Mapping[str, Value | None]) -> None:
    """Raise InvalidSetting if the group settings `own` are invalid or outside the broker's bounds."""
    values = GROUP_CONFIGS.parse(own)
    for name, value in values.items():
        least, most = _bounds(name, broker)
        if least is not None and _number(value) < _number(broker[least]):
            raise InvalidSetting(f"{name}={value}: expected at least {least}={broker[least]}")
        if most is not None and _number(value) > _number(broker[most]):
            raise InvalidSetting(f"{name}={value}: expected at most {most}={broker[most]}")
    for session, heartbeat in _HEARTBEATS:
        session_ms = _number(values.get(session, broker[GROUP_SYNONYMS[session]]))
        heartbeat_ms = _number(values.get(heartbeat, broker[GROUP_SYNONYMS[heartbeat]]))
        if (session in own or heartbeat in own) and session_ms <= heartbeat_ms:
            raise InvalidSetting(f"{session}={session_ms}: expected more than {heartbeat}={heartbeat_ms}")


def consumer_timeouts(own: Mapping[str, str], broker: Mapping[str, Value | None]) -> ConsumerTimeouts:
    """Return the timeouts that a group sets, limited to the broker's current bounds."""
    return ConsumerTimeouts(
        _within_bounds("consumer.session.timeout.ms", own, broker),
        _within_bounds("consumer.heartbeat.interval.ms", own, broker),
    )


def _within_bounds(name: str, own: Mapping[str, str], broker: Mapping[str, Value | None]) -> int | None:
    if name not in own:
        return None
    least, most = _bounds(name, broker)
    value = _number(GROUP_CONFIGS.find(name).parse(own[name]))
    if least is not None:
        value = max(value, _number(broker[least]))
    return value if most is None else min(value, _number(broker[most]))


def _bounds(name: str, broker: Mapping[str, Value | None]) -> tuple[str | None, str | None]:
    """Return the broker settings that bound a group's, such as group.consumer.min.session.timeout.ms."""
    kind, _, rest = name.partition(".")
    least, most = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"
    return least if least in broker else None, most if most in broker else None


def _number(value: Value | None) -> int:
    assert isinstance(value, int), value
    return value
