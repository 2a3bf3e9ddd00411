"""Settings as DescribeConfigs shows them: value, where it comes from, and what else it might have been."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from headrace.broker.broker_settings import BROKER_SETTINGS, COARSER
from headrace.broker.config import BrokerConfig, coarser_times
from headrace.broker.settings import Kind, Scope, Setting, show
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS

PROCESS: Final = Setting(
    name="headrace.pid",
    kind=Kind.INT,
    default=None,
    doc="The process that this broker is; nobody can set it.",
)


class Source(IntEnum):
    """Where a value was set, by the numbers of the protocol."""

    TOPIC = 1
    THIS_BROKER = 2
    ALL_BROKERS = 3
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Synonym:
    """A place that gives, or would give, a setting its value."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Described:
    """One setting of a topic or a broker."""

    setting: Setting
    synonyms: tuple[Synonym, ...]  # the first one counts
    read_only: bool

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def value(self) -> str | None:
        return self.synonyms[0].value

    @property
    def source(self) -> Source:
        return self.synonyms[0].source


def describe_topic(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[Described]:
    """Every setting of a topic that sets `own` itself."""
    for name, setting in TOPIC_SETTINGS.by_name.items():
        places = [Synonym(name, own[name], Source.TOPIC)] if name in own else []
        if name in BROKER_SYNONYMS:
            places += _broker_places(config, BROKER_SYNONYMS[name])
        else:
            places.append(Synonym(name, show(setting.default), Source.DEFAULT))
        yield Described(setting, tuple(places), read_only=False)


def describe_broker(config: BrokerConfig) -> Iterator[Described]:
    """Every setting of this broker, and which process it is: nothing else on the wire tells that."""
    for name, setting in BROKER_SETTINGS.by_name.items():
        places = tuple(_broker_places(config, name))
        yield Described(setting, places, read_only=setting.scope is Scope.READ_ONLY)
    yield Described(PROCESS, (Synonym(PROCESS.name, str(os.getpid()), Source.DEFAULT),), read_only=True)


def describe_all_brokers(config: BrokerConfig) -> Iterator[Described]:
    """The settings that somebody gave to all brokers while they run."""
    for name, value in config.for_all.items():
        setting = BROKER_SETTINGS.find(name)
        yield Described(setting, (Synonym(name, value, Source.ALL_BROKERS),), read_only=False)


def _broker_places(config: BrokerConfig, name: str) -> Iterator[Synonym]:
    """Who gives a broker setting its value, those that win first."""
    layers = (
        (config.for_this, Source.THIS_BROKER),
        (config.for_all, Source.ALL_BROKERS),
        (config.given, Source.STATIC_BROKER),
    )
    for layer, source in layers:
        if name in layer:
            yield Synonym(name, layer[name], source)
    if name in COARSER and (times := coarser_times(config.given)).get(name) is not None:
        given = next(coarser for coarser in COARSER[name] if coarser in config.given)
        yield Synonym(given, show(times[name]), Source.STATIC_BROKER)
    yield Synonym(name, show(BROKER_SETTINGS.by_name[name].default), Source.DEFAULT)
