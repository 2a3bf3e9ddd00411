"""The settings of a group (KIP-848, KIP-932, KIP-1071), which override the broker's `group.*` settings."""

from collections.abc import Mapping
from typing import Final

from headrace.broker.settings.setting import InvalidSetting, Kind, Scope, Setting, Settings, Value
from headrace.coordinators.group.limits import ConsumerTimeouts

_NO_SHARE: Final = "No effect: share groups are not supported."
_NO_STREAMS: Final = "No effect: streams groups are not supported."
_NO_DELAY: Final = "No effect: assignments are computed immediately."
_WITHOUT_EFFECT: Final = (_NO_SHARE, _NO_STREAMS, _NO_DELAY)


def _setting(name: str, kind: Kind, default: Value, doc: str, **bounds: object) -> Setting:
    bounds |= {"scope": Scope.CLUSTER_WIDE, "has_effect": doc not in _WITHOUT_EFFECT}
    return Setting(name=name, kind=kind, default=default, doc=doc, **bounds)  # type: ignore[arg-type]


def _int(name: str, default: int, doc: str, low: int) -> Setting:
    return _setting(name, Kind.INT, default, doc, low=low)


GROUP_CONFIGS: Final = Settings(
    [
        _int(
            "consumer.session.timeout.ms",
            45_000,
            "The session timeout of the members of this consumer group.",
            low=1,
        ),
        _int(
            "consumer.heartbeat.interval.ms",
            5_000,
            "The heartbeat interval of the members of this consumer group.",
            low=1,
        ),
        _int("consumer.assignment.interval.ms", 1_000, _NO_DELAY, low=0),
        _int("share.session.timeout.ms", 45_000, _NO_SHARE, low=1),
        _int("share.heartbeat.interval.ms", 5_000, _NO_SHARE, low=1),
        _int("share.assignment.interval.ms", 1_000, _NO_SHARE, low=0),
        _int("share.record.lock.duration.ms", 30_000, _NO_SHARE, low=1_000),
        _int("share.delivery.count.limit", 5, _NO_SHARE, low=2),
        _int("share.partition.max.record.locks", 2_000, _NO_SHARE, low=100),
        _setting(
            "share.auto.offset.reset",
            Kind.STRING,
            "latest",
            _NO_SHARE,
            form="latest|earliest|by_duration:P.+",
            example="latest, earliest or by_duration:PnDTnHnMn.nS",
        ),
        _setting(
            "share.isolation.level",
            Kind.STRING,
            "read_uncommitted",
            _NO_SHARE,
            choices=("read_committed", "read_uncommitted"),
        ),
        _setting("share.renew.acknowledge.enable", Kind.BOOLEAN, True, _NO_SHARE),
        _int("streams.session.timeout.ms", 45_000, _NO_STREAMS, low=1),
        _int("streams.heartbeat.interval.ms", 5_000, _NO_STREAMS, low=1),
        _int("streams.assignment.interval.ms", 1_000, _NO_STREAMS, low=0),
        _int("streams.initial.rebalance.delay.ms", 3_000, _NO_STREAMS, low=0),
        _int("streams.num.standby.replicas", 0, _NO_STREAMS, low=0),
    ]
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
