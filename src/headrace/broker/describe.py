"""Settings as DescribeConfigs shows them: value, where it comes from, and what else it might have been."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import Final

from headrace.broker.broker_settings import BROKER_SETTINGS, COARSER
from headrace.broker.client_metrics import CLIENT_METRICS_CONFIGS
from headrace.broker.config import BrokerConfig
from headrace.broker.group_configs import GROUP_CONFIGS, GROUP_SYNONYMS
from headrace.broker.settings import Kind, Scope, Setting, show, shown
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS

PROCESS: Final = Setting(
    name="headrace.pid",
    kind=Kind.INT,
    default=None,
    doc="The process that this broker is; nobody can set it.",
)
_UNKNOWN_DOC: Final = "No effect: there is no such setting."
_FAMILIES: Final = {
    name: (times, *coarser) for times, coarser in COARSER.items() for name in (times, *coarser)
}
"""Settings of the same time, the one in ms first: each is a synonym of those before it."""


class Source(IntEnum):
    """Where a value was set, by the numbers of the protocol."""

    TOPIC = 1
    THIS_BROKER = 2
    ALL_BROKERS = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    """A place that gives, or would give, a setting its value."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Described:
    """One setting of a resource. As in Kafka, its value may come from a place that is not a synonym."""

    setting: Setting
    value: str | None
    synonyms: Sequence[Synonym]  # the first one counts
    read_only: bool = False

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def source(self) -> Source:
        return self.synonyms[0].source if self.synonyms else Source.DEFAULT


def describe_topic(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[Described]:
    """Every setting of a topic that sets `own` itself."""
    values = config.topic_values(own)
    for name, setting in TOPIC_SETTINGS.by_name.items():
        if name in values:
            places = [*_own_place(setting, own, Source.TOPIC)]
            if name in BROKER_SYNONYMS:
                places += _broker_places(config, BROKER_SYNONYMS[name])
            yield Described(setting, show(values[name]), places)


def describe_group(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[Described]:
    """Every setting of a group that sets `own` itself."""
    for name, setting in GROUP_CONFIGS.by_name.items():
        places = [*_own_place(setting, own, Source.GROUP)]
        if name in GROUP_SYNONYMS:
            places += _broker_places(config, GROUP_SYNONYMS[name])
        else:
            places.append(Synonym(name, show(setting.default), Source.DEFAULT))
        yield Described(setting, places[0].value, places)


def describe_client_metrics(own: Mapping[str, str]) -> Iterator[Described]:
    """Every setting of a subscription to clients' metrics."""
    for setting in CLIENT_METRICS_CONFIGS.by_name.values():
        places = [*_own_place(setting, own, Source.CLIENT_METRICS)]
        yield Described(setting, places[0].value if places else show(setting.default), places)


def describe_broker(config: BrokerConfig) -> Iterator[Described]:
    """Every setting of this broker, and which process it is: nothing else on the wire tells that."""
    given = config.given.keys() | config.for_all.keys() | config.for_this.keys()
    shown_always = {name for name, setting in BROKER_SETTINGS.by_name.items() if not setting.internal}
    for name in sorted(shown_always | given):
        places = _broker_places(config, name)
        setting = _broker_setting(name)
        value = places[0].value if places else None
        yield Described(setting, value, places, read_only=_is_read_only(setting))
    pid = str(os.getpid())
    yield Described(PROCESS, pid, [Synonym(PROCESS.name, pid, Source.DEFAULT)], read_only=True)


def describe_all_brokers(config: BrokerConfig) -> Iterator[Described]:
    """The settings that somebody gave to all brokers while they run."""
    for name, text in config.for_all.items():
        setting = _broker_setting(name)
        value = shown(setting, text)
        places = [Synonym(name, value, Source.ALL_BROKERS)]
        yield Described(setting, value, places, read_only=_is_read_only(setting))


def _broker_setting(name: str) -> Setting:
    """The setting called `name`; one that is not known is as secret as a password, as in Kafka."""
    known = BROKER_SETTINGS.get(name)
    return known or Setting(name=name, kind=Kind.UNKNOWN, default=None, doc=_UNKNOWN_DOC, has_effect=False)


def _is_read_only(setting: Setting) -> bool:
    """As Kafka shows it: what is for one listener can be changed, and is not said to be."""
    return setting.scope is Scope.READ_ONLY or setting.name not in BROKER_SETTINGS.by_name


def _own_place(setting: Setting, own: Mapping[str, str], source: Source) -> Iterator[Synonym]:
    if setting.name in own:
        yield Synonym(setting.name, shown(setting, own[setting.name]), source)


def _broker_places(config: BrokerConfig, name: str) -> list[Synonym]:
    """Who gives a broker setting its value, those that win first.

    As in Kafka the list begins with the setting itself: if only log.retention.hours is set, log.retention.ms
    has no synonyms.
    """
    layers = (
        (config.for_this, Source.THIS_BROKER),
        (config.for_all, Source.ALL_BROKERS),
        (config.given, Source.STATIC_BROKER),
    )
    base = BROKER_SETTINGS.base_of(name)
    names = _FAMILIES.get(name, (name,)) if base is None else (name, base)
    family = [_broker_setting(each) for each in names]
    places = [
        Synonym(each.name, shown(each, layer[each.name]), source)
        for layer, source in layers
        for each in family
        if each.name in layer
    ]
    places += [
        Synonym(each.name, show(each.default), Source.DEFAULT)
        for each in family
        if each.default is not None and not each.is_sensitive
    ]
    return list(dropwhile(lambda place: place.name != name, places))
