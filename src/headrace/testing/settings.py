"""The settings of brokers in tests: quick where Kafka's defaults are patient."""

from collections.abc import Mapping
from typing import Final

Settings = Mapping[str, object]
"""By Kafka's names; values may be strings, numbers or booleans."""

_QUICK: Final = {
    "group.initial.rebalance.delay.ms": "0",  # who starts one consumer does not wait for a second
    "group.min.session.timeout.ms": "100",
    "group.consumer.heartbeat.interval.ms": "500",
    "offsets.topic.num.partitions": "1",
}
_FOR_SEVERAL: Final = {
    "zookeeper.session.timeout.ms": "6000",  # a paused broker counts as gone after this
    "replica.lag.time.max.ms": "6000",
}
_DECIDED: Final = (
    "broker.id",
    "node.id",
    "log.dirs",
    "log.dir",
    "listeners",
    "advertised.listeners",
    "zookeeper.connect",
)


def as_text(settings: Settings) -> dict[str, str]:
    """As a broker reads them from a file; ValueError for one that is not the test's to decide."""
    for name in _DECIDED:
        if name in settings:
            raise ValueError(f"{name} is decided by the fixture: leave it out")
    return {name: _text(value) for name, value in settings.items()}


def broker_settings(brokers: int, given: Mapping[str, str]) -> dict[str, str]:
    """What a broker of so many is started with, under what was given."""
    replicas = str(min(3, brokers))
    return {
        **_QUICK,
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        **(_FOR_SEVERAL if brokers > 1 else {}),
        **given,
    }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
